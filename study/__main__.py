"""`python -m study` is the `study` command."""

from study.cli import main

main()
