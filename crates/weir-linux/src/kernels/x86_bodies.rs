//! x86-64: the instructions for one line, as text for the assembler, once for each vector form.
//!
//! Words to store are in zmm16, in ymm0 and ymm1, or in xmm0 to xmm3; loads use other registers, so that both
//! can be in one loop.

/// A body for eight lines, so that the loop costs little, and one for the remainder.
macro_rules! line_loop {
    ($setup:literal, $body:ident, $finish:literal) => {
        concat!(
            $setup,
            "\ntest {eights}, {eights}\njz 3f\n2:\n",
            $body!("0"),
            $body!("64"),
            $body!("128"),
            $body!("192"),
            $body!("256"),
            $body!("320"),
            $body!("384"),
            $body!("448"),
            "add {p}, 512\ndec {eights}\njnz 2b\n3:\ntest {ones}, {ones}\njz 5f\n4:\n",
            $body!("0"),
            "add {p}, 64\ndec {ones}\njnz 4b\n5:\n",
            $finish
        )
    };
}

macro_rules! ld512 {
    ($d:literal) => {
        concat!("vmovdqa64 zmm18, [{p} + ", $d, "]\n")
    };
}
macro_rules! ld256 {
    ($d:literal) => {
        concat!(
            "vmovdqa ymm4, [{p} + ",
            $d,
            "]\nvmovdqa ymm5, [{p} + ",
            $d,
            " + 32]\n"
        )
    };
}
macro_rules! ld128 {
    ($d:literal) => {
        concat!(
            "movdqa xmm6, [{p} + ",
            $d,
            "]\nmovdqa xmm7, [{p} + ",
            $d,
            " + 16]\n",
            "movdqa xmm8, [{p} + ",
            $d,
            " + 32]\nmovdqa xmm9, [{p} + ",
            $d,
            " + 48]\n"
        )
    };
}
macro_rules! st512 {
    ($d:literal) => {
        concat!(
            "vmovdqa64 [{p} + ",
            $d,
            "], zmm16\nvpaddq zmm16, zmm16, zmm17\n"
        )
    };
}
macro_rules! st256 {
    ($d:literal) => {
        concat!(
            "vmovdqa [{p} + ",
            $d,
            "], ymm0\nvmovdqa [{p} + ",
            $d,
            " + 32], ymm1\n",
            "vpaddq ymm0, ymm0, ymm2\nvpaddq ymm1, ymm1, ymm3\n"
        )
    };
}
macro_rules! st128 {
    ($d:literal) => {
        concat!(
            "movdqa [{p} + ",
            $d,
            "], xmm0\nmovdqa [{p} + ",
            $d,
            " + 16], xmm1\n",
            "movdqa [{p} + ",
            $d,
            " + 32], xmm2\nmovdqa [{p} + ",
            $d,
            " + 48], xmm3\n",
            "paddq xmm0, xmm4\npaddq xmm1, xmm4\npaddq xmm2, xmm5\npaddq xmm3, xmm5\n"
        )
    };
}
macro_rules! clwb512 {
    ($d:literal) => {
        concat!(st512!($d), "clwb [{p} + ", $d, "]\n")
    };
}
macro_rules! clwb256 {
    ($d:literal) => {
        concat!(st256!($d), "clwb [{p} + ", $d, "]\n")
    };
}
macro_rules! clwb128 {
    ($d:literal) => {
        concat!(st128!($d), "clwb [{p} + ", $d, "]\n")
    };
}
macro_rules! nt512 {
    ($d:literal) => {
        concat!(
            "vmovntdq [{p} + ",
            $d,
            "], zmm16\nvpaddq zmm16, zmm16, zmm17\n"
        )
    };
}
macro_rules! nt256 {
    ($d:literal) => {
        concat!(
            "vmovntdq [{p} + ",
            $d,
            "], ymm0\nvmovntdq [{p} + ",
            $d,
            " + 32], ymm1\n",
            "vpaddq ymm0, ymm0, ymm2\nvpaddq ymm1, ymm1, ymm3\n"
        )
    };
}
macro_rules! nt128 {
    ($d:literal) => {
        concat!(
            "movntdq [{p} + ",
            $d,
            "], xmm0\nmovntdq [{p} + ",
            $d,
            " + 16], xmm1\n",
            "movntdq [{p} + ",
            $d,
            " + 32], xmm2\nmovntdq [{p} + ",
            $d,
            " + 48], xmm3\n",
            "paddq xmm0, xmm4\npaddq xmm1, xmm4\npaddq xmm2, xmm5\npaddq xmm3, xmm5\n"
        )
    };
}
