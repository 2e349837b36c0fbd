"""What each command of `study` does, one module for each; `study.cli` reads the arguments and shows the answer."""
