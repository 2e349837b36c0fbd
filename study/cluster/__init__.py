"""Ray clusters that are there already, or tried out on this machine: addresses, jobs, nodes."""
