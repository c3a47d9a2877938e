//! C interface of the Hugging Face `tokenizers` crate and of `minijinja`.
//!
//! Every function is `extern "C"`, takes borrowed pointers with lengths, and returns a `Status`. It returns
//! results and error messages in a buffer `Bytes`, which the caller passes to `octavo_bytes_free`. Handles
//! are opaque, immutable and thread-safe. No panic leaves this library. bridge.h has the C++ declarations.

mod budget;
mod bytecode;
mod config;
mod environment;
mod json;
mod plamo;
mod precheck;
mod python;
mod template;
mod tokenizer;

use std::panic::{catch_unwind, set_hook, AssertUnwindSafe};
use std::sync::Once;

pub use template::{Limits, Template};
pub use tokenizer::Tokenizer;

#[repr(C)]
#[derive(PartialEq)]
pub enum Status {
    Ok = 0,
    /// The input is wrong; `out` contains the message.
    Invalid = 1,
    /// A panic was caught, which is a bug; `out` contains the message.
    Internal = 2,
}

/// A buffer that the caller owns.
#[repr(C)]
pub struct Bytes {
    data: *mut u8,
    len: usize,
    capacity: usize,
}

impl From<Vec<u8>> for Bytes {
    fn from(bytes: Vec<u8>) -> Bytes {
        let mut bytes = std::mem::ManuallyDrop::new(bytes);
        Bytes { data: bytes.as_mut_ptr(), len: bytes.len(), capacity: bytes.capacity() }
    }
}

type Outcome<T> = Result<T, String>;

/// Runs `body` and writes its bytes or error message to `out`. A panic becomes an error and prints nothing.
unsafe fn answer(out: *mut Bytes, body: impl FnOnce() -> Outcome<Vec<u8>>) -> Status {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| set_hook(Box::new(|_| {})));
    let (status, bytes) = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(bytes)) => (Status::Ok, bytes),
        Ok(Err(message)) => (Status::Invalid, message.into_bytes()),
        Err(panic) => (Status::Internal, panic_text(&*panic).into_bytes()),
    };
    out.write(bytes.into());
    status
}

/// Like answer(), for constructors. Writes the new handle to `handle`.
unsafe fn create<T>(handle: *mut *mut T, out: *mut Bytes, body: impl FnOnce() -> Outcome<T>) -> Status {
    answer(out, || {
        handle.write(Box::into_raw(Box::new(body()?)));
        Ok(Vec::new())
    })
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("panic").to_string()
}

/// Borrowed bytes. They are valid during the call.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Slice {
    data: *const u8,
    len: usize,
}

impl Slice {
    unsafe fn bytes<'a>(self) -> &'a [u8] {
        if self.len == 0 {
            &[]
        } else {
            std::slice::from_raw_parts(self.data, self.len)
        }
    }

    unsafe fn text<'a>(self) -> Outcome<&'a str> {
        std::str::from_utf8(self.bytes()).map_err(|e| format!("invalid UTF-8 at byte {}", e.valid_up_to()))
    }
}

#[no_mangle]
pub unsafe extern "C" fn octavo_bytes_free(bytes: Bytes) {
    drop(Vec::from_raw_parts(bytes.data, bytes.len, bytes.capacity));
}

// --- Tokenizer -------------------------------------------------------------------------------------------------------

/// json: text of tokenizer.json. config: text of tokenizer_config.json, or empty.
#[no_mangle]
pub unsafe extern "C" fn octavo_tokenizer_open(
    json: Slice,
    config: Slice,
    handle: *mut *mut Tokenizer,
    out: *mut Bytes,
) -> Status {
    create(handle, out, || Tokenizer::open(json.bytes(), config.bytes()))
}

#[no_mangle]
pub unsafe extern "C" fn octavo_tokenizer_free(handle: *mut Tokenizer) {
    drop(Box::from_raw(handle));
}

/// out: ids as native-endian u32.
#[no_mangle]
pub unsafe extern "C" fn octavo_tokenizer_encode(
    handle: *const Tokenizer,
    text: Slice,
    add_special_tokens: bool,
    out: *mut Bytes,
) -> Status {
    answer(out, || {
        let ids = (*handle).encode(text.text()?, add_special_tokens)?;
        Ok(ids.into_iter().flat_map(u32::to_ne_bytes).collect())
    })
}

/// second: null for a single text. second_begins: index of the second text's first token in the ids, or -1.
/// out: ids as native-endian u32.
#[no_mangle]
pub unsafe extern "C" fn octavo_tokenizer_encode_texts(
    handle: *const Tokenizer,
    first: Slice,
    second: *const Slice,
    most: usize,
    second_begins: *mut i64,
    out: *mut Bytes,
) -> Status {
    answer(out, || {
        let second = second.as_ref().map(|slice| slice.text()).transpose()?;
        let (ids, begins) = (*handle).encode_texts(first.text()?, second, most)?;
        *second_begins = begins.map_or(-1, |place| place as i64);
        Ok(ids.into_iter().flat_map(u32::to_ne_bytes).collect())
    })
}

/// out: pairs of native-endian u32, one pair for each token: the range of its characters in the text.
#[no_mangle]
pub unsafe extern "C" fn octavo_tokenizer_offsets(
    handle: *const Tokenizer,
    text: Slice,
    add_special_tokens: bool,
    out: *mut Bytes,
) -> Status {
    answer(out, || {
        let offsets = (*handle).offsets(text.text()?, add_special_tokens)?;
        Ok(offsets.into_iter().flat_map(|(begin, end)| [begin as u32, end as u32]).flat_map(u32::to_ne_bytes).collect())
    })
}

/// continues: the ids continue a text, so they are not decoded as its beginning.
#[no_mangle]
pub unsafe extern "C" fn octavo_tokenizer_decode(
    handle: *const Tokenizer,
    ids: *const u32,
    count: usize,
    skip_special_tokens: bool,
    continues: bool,
    out: *mut Bytes,
) -> Status {
    answer(out, || {
        let ids = if count == 0 { &[] } else { std::slice::from_raw_parts(ids, count) };
        let decode = if continues { Tokenizer::decode_continuation } else { Tokenizer::decode };
        Ok(decode(&*handle, ids, skip_special_tokens)?.into_bytes())
    })
}

/// Returns the highest id + 1, including added tokens.
#[no_mangle]
pub unsafe extern "C" fn octavo_tokenizer_vocab_size(handle: *const Tokenizer) -> u32 {
    (*handle).vocab_size()
}

/// out: the token as the vocabulary writes it. Returns Invalid if the id does not exist.
#[no_mangle]
pub unsafe extern "C" fn octavo_tokenizer_token(handle: *const Tokenizer, id: u32, out: *mut Bytes) -> Status {
    answer(out, || Ok((*handle).token(id)?.into_bytes()))
}

/// out: the bytes that the token adds in the middle of a text. Returns Invalid if the id does not exist.
#[no_mangle]
pub unsafe extern "C" fn octavo_tokenizer_token_bytes(handle: *const Tokenizer, id: u32, out: *mut Bytes) -> Status {
    answer(out, || (*handle).token_bytes(id))
}

/// token: as the vocabulary writes it. Returns -1 if there is no such token.
#[no_mangle]
pub unsafe extern "C" fn octavo_tokenizer_id(handle: *const Tokenizer, token: Slice) -> i64 {
    token.text().ok().and_then(|token| (*handle).id(token)).map_or(-1, i64::from)
}

#[no_mangle]
pub unsafe extern "C" fn octavo_tokenizer_is_special(handle: *const Tokenizer, id: u32) -> bool {
    (*handle).is_special(id)
}

/// Returns true if the byte-fallback decoder decodes the token, such as `<0x0A>`.
#[no_mangle]
pub unsafe extern "C" fn octavo_tokenizer_is_byte(handle: *const Tokenizer, id: u32) -> bool {
    (*handle).is_byte(id)
}

#[no_mangle]
pub unsafe extern "C" fn octavo_tokenizer_grouping(handle: *const Tokenizer) -> tokenizer::Grouping {
    (*handle).grouping()
}

// --- Chat template ---------------------------------------------------------------------------------------------------

/// special_tokens: JSON object of names and texts. Every render gets them.
#[no_mangle]
pub unsafe extern "C" fn octavo_template_open(
    source: Slice,
    special_tokens: Slice,
    limits: Limits,
    handle: *mut *mut Template,
    out: *mut Bytes,
) -> Status {
    create(handle, out, || Template::open(source.text()?, special_tokens.text()?, limits))
}

#[no_mangle]
pub unsafe extern "C" fn octavo_template_free(handle: *mut Template) {
    drop(Box::from_raw(handle));
}

/// JSON texts; empty: null. now: seconds since the epoch.
#[repr(C)]
pub struct RenderInput {
    messages: Slice,
    tools: Slice,
    documents: Slice,
    kwargs: Slice,
    add_generation_prompt: bool,
    continue_final_message: bool,
    now: i64,
}

/// out: the rendered text. If the template engine panics, returns an error of the template.
#[no_mangle]
pub unsafe extern "C" fn octavo_template_render(
    handle: *const Template,
    input: *const RenderInput,
    out: *mut Bytes,
) -> Status {
    let status = answer(out, || {
        let input = &*input;
        let conversation = template::Conversation {
            messages: input.messages.text()?,
            tools: input.tools.text()?,
            documents: input.documents.text()?,
            kwargs: input.kwargs.text()?,
            add_generation_prompt: input.add_generation_prompt,
            continue_final_message: input.continue_final_message,
            now: input.now,
        };
        Ok((*handle).render(&conversation)?.into_bytes())
    });
    if status == Status::Internal {
        Status::Invalid
    } else {
        status
    }
}
