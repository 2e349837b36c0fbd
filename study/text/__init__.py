"""Text for people: Markdown, moments, and what a message can quote."""
