"""Text for people: Markdown, and moments."""
