// Nothing is known yet; the progress alone is shown.
