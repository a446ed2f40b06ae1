"""Task folders of Harbor, by the name ``harbor:DIR``."""
