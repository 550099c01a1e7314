"""The self-correcting graph: a state, nodes that change it, and edges that choose the next node."""
