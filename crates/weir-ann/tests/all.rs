//! Laws of vectors, graphs and searches, and files that are wrong.

mod arenas;
mod files;
mod graphs;
mod host;
mod ladder;
mod model;
mod searches;
