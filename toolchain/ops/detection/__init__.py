"""The end of a detector: from encoded boxes and scores to the boxes that were found."""
