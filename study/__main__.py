"""`python -m study` is the `study` command."""

from study.cli import main

if __name__ == "__main__":
    main()
