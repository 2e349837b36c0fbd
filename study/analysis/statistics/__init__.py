"""Numbers from trials: frames, cells, spreads, differences, claims and verdicts; nothing is printed or drawn here."""
