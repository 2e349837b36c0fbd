"""Files: written whole or not at all, and recognised by their content."""
