"""A user's labelled data: which inputs there are, and what is true of each."""
