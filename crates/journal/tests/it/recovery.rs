//! Torn ends, damage, and what an operator reads about them.
