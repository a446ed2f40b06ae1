"""tau2-bench's telecom domain: the agent's desk and the customer's phone."""
