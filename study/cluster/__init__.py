"""Ray clusters, existing ones or one tried out on this machine: addresses, jobs, nodes."""
