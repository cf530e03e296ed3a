//! Laws of the readers, then examples.

use super::*;
