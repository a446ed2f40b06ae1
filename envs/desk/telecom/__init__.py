"""A telephone company's desk for lines and bills."""
