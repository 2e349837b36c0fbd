"""Text for people: Markdown, moments, commands to type, and what a message can quote."""
