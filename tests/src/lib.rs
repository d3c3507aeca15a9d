//! Generators, oracles and fakes.
