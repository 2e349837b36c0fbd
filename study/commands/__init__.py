"""The commands of `study`, one module for each; `study.cli` reads the arguments and shows the answer."""
