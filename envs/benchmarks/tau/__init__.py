"""tau-bench and tau2-bench: customer service with tools, over the official data files."""
