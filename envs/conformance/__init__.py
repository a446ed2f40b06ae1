"""``manyturn check``: whether an environment keeps the contract."""
