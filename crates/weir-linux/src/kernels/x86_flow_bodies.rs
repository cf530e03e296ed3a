//! x86-64: the instructions for one line that is computed from loaded lines.
//!
//! `{a}` and `{b}` are read into zmm16, ymm0 and ymm1, or xmm0 to xmm3; the factor is in zmm17, ymm4 or xmm4;
//! `{p}` is written.

macro_rules! copy512 {
    ($d:literal) => {
        concat!("vmovapd zmm16, [{a} + ", $d, "]\n")
    };
}
macro_rules! scale512 {
    ($d:literal) => {
        concat!("vmulpd zmm16, zmm17, [{a} + ", $d, "]\n")
    };
}
macro_rules! add512 {
    ($d:literal) => {
        concat!(
            "vmovapd zmm16, [{a} + ",
            $d,
            "]\n",
            "vaddpd zmm16, zmm16, [{b} + ",
            $d,
            "]\n"
        )
    };
}
macro_rules! triad512 {
    ($d:literal) => {
        concat!(
            "vmulpd zmm16, zmm17, [{b} + ",
            $d,
            "]\n",
            "vaddpd zmm16, zmm16, [{a} + ",
            $d,
            "]\n"
        )
    };
}
macro_rules! put512 {
    ($d:literal) => {
        concat!("vmovdqa64 [{p} + ", $d, "], zmm16\n")
    };
}
macro_rules! putclwb512 {
    ($d:literal) => {
        concat!(
            "vmovdqa64 [{p} + ",
            $d,
            "], zmm16\n",
            "clwb [{p} + ",
            $d,
            "]\n"
        )
    };
}
macro_rules! putnt512 {
    ($d:literal) => {
        concat!("vmovntdq [{p} + ", $d, "], zmm16\n")
    };
}
macro_rules! copy256 {
    ($d:literal) => {
        concat!(
            "vmovapd ymm0, [{a} + ",
            $d,
            "]\n",
            "vmovapd ymm1, [{a} + ",
            $d,
            " + 32]\n"
        )
    };
}
macro_rules! scale256 {
    ($d:literal) => {
        concat!(
            "vmulpd ymm0, ymm4, [{a} + ",
            $d,
            "]\n",
            "vmulpd ymm1, ymm4, [{a} + ",
            $d,
            " + 32]\n"
        )
    };
}
macro_rules! add256 {
    ($d:literal) => {
        concat!(
            "vmovapd ymm0, [{a} + ",
            $d,
            "]\n",
            "vaddpd ymm0, ymm0, [{b} + ",
            $d,
            "]\n",
            "vmovapd ymm1, [{a} + ",
            $d,
            " + 32]\n",
            "vaddpd ymm1, ymm1, [{b} + ",
            $d,
            " + 32]\n"
        )
    };
}
macro_rules! triad256 {
    ($d:literal) => {
        concat!(
            "vmulpd ymm0, ymm4, [{b} + ",
            $d,
            "]\n",
            "vaddpd ymm0, ymm0, [{a} + ",
            $d,
            "]\n",
            "vmulpd ymm1, ymm4, [{b} + ",
            $d,
            " + 32]\n",
            "vaddpd ymm1, ymm1, [{a} + ",
            $d,
            " + 32]\n"
        )
    };
}
macro_rules! put256 {
    ($d:literal) => {
        concat!(
            "vmovdqa [{p} + ",
            $d,
            "], ymm0\n",
            "vmovdqa [{p} + ",
            $d,
            " + 32], ymm1\n"
        )
    };
}
macro_rules! putclwb256 {
    ($d:literal) => {
        concat!(
            "vmovdqa [{p} + ",
            $d,
            "], ymm0\n",
            "vmovdqa [{p} + ",
            $d,
            " + 32], ymm1\n",
            "clwb [{p} + ",
            $d,
            "]\n"
        )
    };
}
macro_rules! putnt256 {
    ($d:literal) => {
        concat!(
            "vmovntdq [{p} + ",
            $d,
            "], ymm0\n",
            "vmovntdq [{p} + ",
            $d,
            " + 32], ymm1\n"
        )
    };
}
macro_rules! copy128 {
    ($d:literal) => {
        concat!(
            "movapd xmm0, [{a} + ",
            $d,
            "]\n",
            "movapd xmm1, [{a} + ",
            $d,
            " + 16]\n",
            "movapd xmm2, [{a} + ",
            $d,
            " + 32]\n",
            "movapd xmm3, [{a} + ",
            $d,
            " + 48]\n"
        )
    };
}
macro_rules! scale128 {
    ($d:literal) => {
        concat!(
            "movapd xmm0, [{a} + ",
            $d,
            "]\nmulpd xmm0, xmm4\n",
            "movapd xmm1, [{a} + ",
            $d,
            " + 16]\nmulpd xmm1, xmm4\n",
            "movapd xmm2, [{a} + ",
            $d,
            " + 32]\nmulpd xmm2, xmm4\n",
            "movapd xmm3, [{a} + ",
            $d,
            " + 48]\nmulpd xmm3, xmm4\n"
        )
    };
}
macro_rules! add128 {
    ($d:literal) => {
        concat!(
            "movapd xmm0, [{a} + ",
            $d,
            "]\n",
            "addpd xmm0, [{b} + ",
            $d,
            "]\n",
            "movapd xmm1, [{a} + ",
            $d,
            " + 16]\n",
            "addpd xmm1, [{b} + ",
            $d,
            " + 16]\n",
            "movapd xmm2, [{a} + ",
            $d,
            " + 32]\n",
            "addpd xmm2, [{b} + ",
            $d,
            " + 32]\n",
            "movapd xmm3, [{a} + ",
            $d,
            " + 48]\n",
            "addpd xmm3, [{b} + ",
            $d,
            " + 48]\n"
        )
    };
}
macro_rules! triad128 {
    ($d:literal) => {
        concat!(
            "movapd xmm0, [{b} + ",
            $d,
            "]\nmulpd xmm0, xmm4\n",
            "addpd xmm0, [{a} + ",
            $d,
            "]\n",
            "movapd xmm1, [{b} + ",
            $d,
            " + 16]\nmulpd xmm1, xmm4\n",
            "addpd xmm1, [{a} + ",
            $d,
            " + 16]\n",
            "movapd xmm2, [{b} + ",
            $d,
            " + 32]\nmulpd xmm2, xmm4\n",
            "addpd xmm2, [{a} + ",
            $d,
            " + 32]\n",
            "movapd xmm3, [{b} + ",
            $d,
            " + 48]\nmulpd xmm3, xmm4\n",
            "addpd xmm3, [{a} + ",
            $d,
            " + 48]\n"
        )
    };
}
macro_rules! put128 {
    ($d:literal) => {
        concat!(
            "movdqa [{p} + ",
            $d,
            "], xmm0\n",
            "movdqa [{p} + ",
            $d,
            " + 16], xmm1\n",
            "movdqa [{p} + ",
            $d,
            " + 32], xmm2\n",
            "movdqa [{p} + ",
            $d,
            " + 48], xmm3\n"
        )
    };
}
macro_rules! putclwb128 {
    ($d:literal) => {
        concat!(
            "movdqa [{p} + ",
            $d,
            "], xmm0\n",
            "movdqa [{p} + ",
            $d,
            " + 16], xmm1\n",
            "movdqa [{p} + ",
            $d,
            " + 32], xmm2\n",
            "movdqa [{p} + ",
            $d,
            " + 48], xmm3\n",
            "clwb [{p} + ",
            $d,
            "]\n"
        )
    };
}
macro_rules! putnt128 {
    ($d:literal) => {
        concat!(
            "movntdq [{p} + ",
            $d,
            "], xmm0\n",
            "movntdq [{p} + ",
            $d,
            " + 16], xmm1\n",
            "movntdq [{p} + ",
            $d,
            " + 32], xmm2\n",
            "movntdq [{p} + ",
            $d,
            " + 48], xmm3\n"
        )
    };
}
