"""Which search finds a good configuration for the fewest epochs, replayed on recorded curves."""
