//! What a graph declares, as plain data, whatever file it came from.
