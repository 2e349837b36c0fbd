"""Simulated studies whose truth is known: one module for each kind of statement, each with `rows(draws)`."""
