"""What runs trials, from a study's first check to its report: in a process of its own, or that of the command."""
