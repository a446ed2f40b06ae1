"""Drafts for a user who edits them and never says what they prefer."""
