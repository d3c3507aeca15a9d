//! Three-part addresses `name@path.session`.
