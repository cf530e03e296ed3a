//! x86-64: the instructions for one line, as text for the assembler, once for each vector form.
//!
//! `\d` is the displacement of the line in bytes; `loop_over_lines!` repeats a body with each displacement.
//!
//! Words to store are in zmm16, in ymm0 and ymm1, or in xmm0 to xmm3, and the registers after these have what
//! is added to them; loads use other registers, so that both can be in one loop. Where a line is computed from
//! loaded lines, `{a}` and `{b}` are read into the registers of the words, the factor is in zmm17, ymm4 or
//! xmm4, and `{p}` is written.

// One line for a form: a table.
#[rustfmt::skip]
macro_rules! body {
    (ld 512) => { "vmovdqa64 zmm18, [{p} + \\d]\n" };
    (ld 256) => { "vmovdqa ymm4, [{p} + \\d]\nvmovdqa ymm5, [{p} + \\d + 32]\n" };
    (ld 128) => { ".irp i, 6, 7, 8, 9\nmovdqa xmm\\i, [{p} + \\d + 16*\\i - 96]\n.endr\n" };
    (ntld 512) => { "vmovntdqa zmm18, [{p} + \\d]\n" };
    (ntld 256) => { "vmovntdqa ymm4, [{p} + \\d]\nvmovntdqa ymm5, [{p} + \\d + 32]\n" };
    (ntld 128) => { ".irp i, 6, 7, 8, 9\nmovntdqa xmm\\i, [{p} + \\d + 16*\\i - 96]\n.endr\n" };
    (st $w:tt) => { concat!(body!(put $w), body!(step $w)) };
    (clwb $w:tt) => { concat!(body!(st $w), "clwb [{p} + \\d]\n") };
    (nt $w:tt) => { concat!(body!(putnt $w), body!(step $w)) };
    (step 512) => { "vpaddq zmm16, zmm16, zmm17\n" };
    (step 256) => { "vpaddq ymm0, ymm0, ymm2\nvpaddq ymm1, ymm1, ymm3\n" };
    (step 128) => { "paddq xmm0, xmm4\npaddq xmm1, xmm4\npaddq xmm2, xmm5\npaddq xmm3, xmm5\n" };

    (put 512) => { "vmovdqa64 [{p} + \\d], zmm16\n" };
    (put 256) => { ".irp i, 0, 1\nvmovdqa [{p} + \\d + 32*\\i], ymm\\i\n.endr\n" };
    (put 128) => { ".irp i, 0, 1, 2, 3\nmovdqa [{p} + \\d + 16*\\i], xmm\\i\n.endr\n" };
    (putclwb $w:tt) => { concat!(body!(put $w), "clwb [{p} + \\d]\n") };
    (putnt 512) => { "vmovntdq [{p} + \\d], zmm16\n" };
    (putnt 256) => { ".irp i, 0, 1\nvmovntdq [{p} + \\d + 32*\\i], ymm\\i\n.endr\n" };
    (putnt 128) => { ".irp i, 0, 1, 2, 3\nmovntdq [{p} + \\d + 16*\\i], xmm\\i\n.endr\n" };

    (copy 512) => { "vmovapd zmm16, [{a} + \\d]\n" };
    (copy 256) => { ".irp i, 0, 1\nvmovapd ymm\\i, [{a} + \\d + 32*\\i]\n.endr\n" };
    (copy 128) => { ".irp i, 0, 1, 2, 3\nmovapd xmm\\i, [{a} + \\d + 16*\\i]\n.endr\n" };
    (scale 512) => { "vmulpd zmm16, zmm17, [{a} + \\d]\n" };
    (scale 256) => { ".irp i, 0, 1\nvmulpd ymm\\i, ymm4, [{a} + \\d + 32*\\i]\n.endr\n" };
    (scale 128) => { ".irp i, 0, 1, 2, 3\nmovapd xmm\\i, [{a} + \\d + 16*\\i]\nmulpd xmm\\i, xmm4\n.endr\n" };
    (add 512) => { "vmovapd zmm16, [{a} + \\d]\nvaddpd zmm16, zmm16, [{b} + \\d]\n" };
    (add 256) => { ".irp i, 0, 1\nvmovapd ymm\\i, [{a} + \\d + 32*\\i]\nvaddpd ymm\\i, ymm\\i, [{b} + \\d + 32*\\i]\n.endr\n" };
    (add 128) => { ".irp i, 0, 1, 2, 3\nmovapd xmm\\i, [{a} + \\d + 16*\\i]\naddpd xmm\\i, [{b} + \\d + 16*\\i]\n.endr\n" };
    (triad 512) => { "vmulpd zmm16, zmm17, [{b} + \\d]\nvaddpd zmm16, zmm16, [{a} + \\d]\n" };
    (triad 256) => { ".irp i, 0, 1\nvmulpd ymm\\i, ymm4, [{b} + \\d + 32*\\i]\nvaddpd ymm\\i, ymm\\i, [{a} + \\d + 32*\\i]\n.endr\n" };
    (triad 128) => { ".irp i, 0, 1, 2, 3\nmovapd xmm\\i, [{b} + \\d + 16*\\i]\nmulpd xmm\\i, xmm4\naddpd xmm\\i, [{a} + \\d + 16*\\i]\n.endr\n" };
}

/// Loads the words to store and what is added to them; loads alone need neither.
#[rustfmt::skip]
macro_rules! load_words {
    (ld $w:tt) => { "/* {data} */\n" };
    (ntld $w:tt) => { load_words!(ld $w) };
    ($op:ident 512) => { "vmovdqa64 zmm16, [{data}]\nvmovdqa64 zmm17, [{data} + 64]\n" };
    ($op:ident 256) => { ".irp i, 0, 1, 2, 3\nvmovdqa ymm\\i, [{data} + 32*\\i]\n.endr\n" };
    ($op:ident 128) => { ".irp i, 0, 1, 2, 3, 4\nmovdqa xmm\\i, [{data} + 16*\\i]\n.endr\nmovdqa xmm5, [{data} + 96]\n" };
}

/// Keeps the words for the next run.
#[rustfmt::skip]
macro_rules! keep_words {
    (ld 256) => { "vzeroupper" };
    (ld $w:tt) => { "" };
    (ntld $w:tt) => { keep_words!(ld $w) };
    ($op:ident 512) => { "vmovdqa64 [{data}], zmm16" };
    ($op:ident 256) => { "vmovdqa [{data}], ymm0\nvmovdqa [{data} + 32], ymm1\nvzeroupper" };
    ($op:ident 128) => { ".irp i, 0, 1, 2, 3\nmovdqa [{data} + 16*\\i], xmm\\i\n.endr" };
}

/// A loop over eights of lines, so that it costs little, and one over the remainder: `$body` for each line;
/// `$advance` moves the pointers by `\s` bytes.
macro_rules! loop_over_lines {
    ($body:expr, $advance:literal) => {
        concat!(
            "test {eights}, {eights}\njz 3f\n2:\n",
            ".irp d, 0, 64, 128, 192, 256, 320, 384, 448\n",
            $body,
            ".endr\n.irp s, 512\n",
            $advance,
            ".endr\ndec {eights}\njnz 2b\n3:\n",
            "test {ones}, {ones}\njz 5f\n4:\n.irp d, 0\n",
            $body,
            ".endr\n.irp s, 64\n",
            $advance,
            ".endr\ndec {ones}\njnz 4b\n5:\n"
        )
    };
}

/// `asm!` that declares the vector registers which the bodies of a width change. `vzeroupper` changes all of
/// the 16 that older code can see.
#[rustfmt::skip]
macro_rules! vector_asm {
    (512 $($asm:tt)*) => {
        std::arch::asm!($($asm)* out("xmm16") _, out("xmm17") _, out("xmm18") _, options(nostack))
    };
    (256 $($asm:tt)*) => {
        vector_asm!(128 $($asm)* out("xmm10") _, out("xmm11") _, out("xmm12") _, out("xmm13") _, out("xmm14") _, out("xmm15") _,)
    };
    (128 $($asm:tt)*) => {
        std::arch::asm!(
            $($asm)*
            out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _, out("xmm4") _,
            out("xmm5") _, out("xmm6") _, out("xmm7") _, out("xmm8") _, out("xmm9") _,
            options(nostack)
        )
    };
}
