"""Systems of others, and a plain baseline, as arms of `experiments/peers.toml`."""
