//! The calls of stillcore in a line for a shell, word by word.

/// The words of each simple command of a line; what `>` writes to is left out.
pub(crate) fn words(line: &str) -> Vec<Vec<String>> {
    let mut all = vec![Vec::new()];
    let (mut word, mut quote, mut redirects) = (None::<String>, None, false);
    let end = |word: &mut Option<String>, redirects: &mut bool, all: &mut Vec<Vec<String>>| {
        if let Some(word) = word.take() {
            if *redirects {
                *redirects = false;
            } else {
                all.last_mut().unwrap().push(word);
            }
        }
    };
    for c in line.chars() {
        match quote {
            Some(open) if c == open => quote = None,
            None if matches!(c, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            None if c == ' ' => end(&mut word, &mut redirects, &mut all),
            None if matches!(c, '|' | ';' | '&') => {
                end(&mut word, &mut redirects, &mut all);
                all.push(Vec::new());
            }
            None if c == '>' => {
                end(&mut word, &mut redirects, &mut all);
                redirects = true;
            }
            _ => word.get_or_insert_default().push(c),
        }
    }
    end(&mut word, &mut redirects, &mut all);
    all.retain(|words| !words.is_empty());
    all
}

/// The calls of stillcore in a line, words behind the program's name: those behind `sudo`, and
/// those behind a `--` of `compare` and `lab run`.
pub(crate) fn calls(line: &str) -> Vec<Vec<String>> {
    let mut calls = Vec::new();
    for command in words(line) {
        let command: Vec<String> =
            command.into_iter().skip_while(|word| word == "sudo" || word.contains('=')).collect();
        let Some((program, rest)) = command.split_first() else { continue };
        if !program.ends_with("stillcore") {
            continue;
        }
        let mut parts = rest.split(|word| word == "--").skip(1);
        let verb = rest.first().map(String::as_str);
        if verb == Some("lab") {
            calls.extend(parts.next().filter(|part| !part[0].starts_with('/')).map(<[String]>::to_vec));
        } else if verb == Some("compare") {
            let inner = parts.filter(|part| part.first().is_some_and(|word| word.ends_with("stillcore")));
            calls.extend(inner.map(|part| part[1..].to_vec()));
        }
        calls.push(rest.to_vec());
    }
    calls
}
