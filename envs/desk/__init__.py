"""Service desks: tools over a database, a policy, and customers who want something done."""
