"""What a fetch task does: whose turn it is, what must hold before a request, what follows from its answer."""
