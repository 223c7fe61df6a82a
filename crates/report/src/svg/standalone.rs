//! A chart as a file of its own: with a name space, and the colours that a page would give it by
//! its style sheet.

/// Colours of the light page, and the eight hues.
const STYLE: &str = "<style>.chart{background:#fff;--s0:#0b6bcb;--s1:#c2410c;--s2:#15803d;--s3:#7e22ce;--s4:#a16207;--s5:#0f172a}\
    text{font:12px system-ui,Arial,sans-serif;fill:#1e293b}.t,.n{fill:#64748b}.c{text-anchor:middle}.e{text-anchor:end}.x{font-size:10.5px}\
    .l{font-weight:600}.g{stroke:#e2e8f0;fill:none}.m{stroke:#e2e8f0;stroke-opacity:.4;fill:none}.a{stroke:#64748b;fill:none}\
    .s{fill:none;stroke-width:1.6}.v{fill:none;stroke-width:1.4}.w{stroke-width:2.5;fill:none}.o{fill:#fff;stroke-width:1.4}\
    path.s0,circle.s0{stroke:var(--s0)}path.s1{stroke:var(--s1)}path.s2{stroke:var(--s2)}path.s3{stroke:var(--s3)}\
    path.s4{stroke:var(--s4)}path.s5{stroke:var(--s5)}text.s0,.d.s0,.f.s0{fill:var(--s0)}text.s1{fill:var(--s1)}text.s2{fill:var(--s2)}\
    text.s3{fill:var(--s3)}text.s4{fill:var(--s4)}text.s5{fill:var(--s5)}.q{fill-opacity:.28}\
    .k0{--k:#0072b2}.k1{--k:#d55e00}.k2{--k:#00795a}.k3{--k:#c061a0}.k4{--k:#b07d00}.k5{--k:#3a9bd9}.k6{--k:#7d6ab5}.k7{--k:#6b8f3c}.k8{--k:#1b1f24}\
    path.k0,path.k1,path.k2,path.k3,path.k4,path.k5,path.k6,path.k7,path.k8{stroke:var(--k)}\
    text.k0,text.k1,text.k2,text.k3,text.k4,text.k5,text.k6,text.k7,text.k8,.bar,.pt{fill:var(--k)}.bar{fill-opacity:.82}\
    .iv{stroke:#1b1f24}path.said{stroke:#b3261e;stroke-width:2}text.said{fill:#b3261e}</style>";

/// The chart as a file.
pub fn standalone(chart: &str) -> String {
    match chart.split_once('>') {
        Some((head, rest)) => format!("{head} xmlns=\"http://www.w3.org/2000/svg\">{STYLE}{rest}\n"),
        None => chart.to_owned(),
    }
}
