"""Episodes, and the policies that play them."""
