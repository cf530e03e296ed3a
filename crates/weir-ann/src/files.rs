//! Files of vectors: fvecs, bvecs and ivecs, in which each record begins with its number of elements.
//!
//! <http://corpus-texmex.irisa.fr/> describes them: 4 bytes for the number, then as many elements of 4 bytes (floating
//! point or whole), or of 1 byte; all with the lowest byte first.

use std::io::{ErrorKind, Read};

use crate::AnnError;
use crate::vectors::Vectors;

weir_model::named! {
    /// What an element is.
    pub enum Element {
        /// A floating-point number of 4 bytes.
        Float = "fvecs",
        /// A byte without sign.
        Byte = "bvecs",
        /// A whole number of 4 bytes.
        Whole = "ivecs",
    }
}

impl Element {
    /// By the end of a file's name.
    ///
    /// # Errors
    /// It is none of the three.
    pub fn of(file: &str) -> Result<Self, AnnError> {
        let end = file.rsplit_once('.').map_or("", |(_, end)| end);
        Self::named(end).ok_or_else(|| AnnError::File {
            file: file.into(),
            why: "the name of a file of vectors ends in .fvecs, .bvecs or .ivecs".into(),
        })
    }

    fn bytes(self) -> usize {
        match self {
            Element::Byte => 1,
            Element::Float | Element::Whole => 4,
        }
    }
}

/// More elements than any vector has.
const MOST_DIMS: u32 = 65_536;

/// Reads the first vectors of a file.
///
/// # Errors
/// It cannot be read, has none, ends within a record, or a record has another length than the first, or an element that is
/// no finite number.
pub fn read(
    file: &str,
    element: Element,
    from: &mut dyn Read,
    most: usize,
) -> Result<Vectors, AnnError> {
    let wrong = |record, why: String| AnnError::Record {
        file: file.into(),
        record,
        why,
    };
    let mut dims = None;
    let mut data: Vec<f32> = Vec::new();
    let mut body = Vec::new();
    for record in 0..most {
        let Some(count) = head(from).map_err(|why| wrong(record, why))? else {
            break;
        };
        if !(1..=MOST_DIMS).contains(&count) {
            return Err(wrong(
                record,
                format!("it says that it has {count} elements"),
            ));
        }
        let count = count as usize;
        if let Some(wanted) = dims.filter(|wanted| *wanted != count) {
            return Err(wrong(
                record,
                format!("it has {count} elements, and the first has {wanted}"),
            ));
        }
        dims = Some(count);
        body.resize(count * element.bytes(), 0);
        from.read_exact(&mut body)
            .map_err(|error| match error.kind() {
                ErrorKind::UnexpectedEof => wrong(record, "the file ends within it".into()),
                _ => wrong(record, error.to_string()),
            })?;
        let four = |bytes: &[u8]| bytes.try_into().unwrap_or([0; 4]);
        match element {
            Element::Byte => data.extend(body.iter().map(|byte| f32::from(*byte))),
            Element::Float => data.extend(
                body.chunks_exact(4)
                    .map(|bytes| f32::from_le_bytes(four(bytes))),
            ),
            Element::Whole => data.extend(
                body.chunks_exact(4)
                    .map(|bytes| i32::from_le_bytes(four(bytes)) as f32),
            ),
        }
        let own = data.len() - count;
        if let Some(at) = data
            .iter()
            .skip(own)
            .position(|element| !element.is_finite())
        {
            return Err(wrong(record, format!("element {at} is no finite number")));
        }
    }
    match dims {
        Some(dims) => Vectors::new(dims, data),
        None => Err(AnnError::File {
            file: file.into(),
            why: "it has no vector".into(),
        }),
    }
}

/// The number of elements of the next record; nothing at the end of the file.
fn head(from: &mut dyn Read) -> Result<Option<u32>, String> {
    let mut head = [0; 4];
    let mut filled = 0;
    while filled < 4 {
        match from.read(&mut head[filled..]) {
            Ok(0) if filled == 0 => return Ok(None),
            Ok(0) => return Err("the file ends within its head".into()),
            Ok(more) => filled += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error.to_string()),
        }
    }
    Ok(Some(u32::from_le_bytes(head)))
}
