//! The table of settings as the page `docs/configuration.md`.

use super::table::SETTINGS;

/// Returns the page `docs/configuration.md`.
pub(crate) fn markdown() -> String {
    let mut page = String::from(
        "# Configuration\n\n\
        <!-- Written by `sluice config --markdown`; a test checks that it is up to date. -->\n\n\
        The settings of `sluice serve` come from a TOML file (`--config FILE`, else `SLUICE_CONFIG`, else\n\
        `./sluice.toml` if it exists), from the environment, and from flags; each source overrides the one before.\n\
        `sluice config` shows every value and its source. One error message lists all mistakes of a configuration.\n\n\
        Durations are written `500ms`, `30s`, `5m`, `12h`, `1h30m`, `7d`; sizes `512KiB`, `64MiB`, `10MB`, or a\n\
        number of bytes.\n\n\
        ```toml\n\
        # sluice.toml\n\
        listen = \"127.0.0.1:7070\"\n\
        data_dir = \"/var/lib/sluice\"\n\
        durability = \"interval:1s\"\n\n\
        [limits]\n\
        payload = \"4MiB\"\n\
        ```\n",
    );
    let mut section = Some("");
    for setting in SETTINGS {
        if setting.section() != section {
            section = setting.section();
            let title = section.map_or_else(|| "General".to_owned(), |s| format!("`[{s}]`"));
            let note = match section {
                Some("limits") => {
                    "A node of a cluster follows the limits of the cluster, whatever these settings are: see\n\
                    [change limits](cluster.md#change-limits).\n\n"
                }
                _ => "",
            };
            page.push_str(&format!(
                "\n## {title}\n\n{note}| setting | default | what it does | flag, environment \
                |\n|---|---|---|---|\n"
            ));
        }
        let placeholder = setting.placeholder.replace('|', "\\|");
        let value = if setting.is_switch() { String::new() } else { format!(" {placeholder}") };
        page.push_str(&format!(
            "| `{}` | `{}` | {} | `--{}{value}`<br>`{}` |\n",
            setting.key,
            setting.default,
            setting.doc,
            setting.flag(),
            setting.env()
        ));
    }
    page
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_committed_page_is_up_to_date() {
        let committed = include_str!("../../../../docs/configuration.md");
        assert!(
            committed == super::markdown(),
            "run: cargo run -- config --markdown > docs/configuration.md"
        );
    }
}
