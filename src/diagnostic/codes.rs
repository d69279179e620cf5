//! Every sort of diagnostic, with a paragraph on what lies behind it.

use super::Diagnostic;

/// Codes with their explanations, in the order of their names.
pub static CODES: &[(&str, &str)] = &[
    (
        "absent",
        "An entry with `state: absent` is to be gone, so only what tells it from others means anything: the key and the scope of a \
         variable, the user of a member, the URL of a hook. A value beside `state: absent` is usually what is left of an edit. A project \
         with `state: absent` is deleted with everything in it, so its document has nothing else but its path. A group is never deleted.",
    ),
    (
        "absorb",
        "A difference can be absorbed if a manifest can say what is there, in the place where it says something else. What may be a secret is \
         not written into a manifest, a template or a reference is not replaced by what it happens to come to, and what several documents \
         share at a YAML anchor is not changed for all of them. Edit these by hand, with what the plan shows beside you.",
    ),
    (
        "acknowledgement",
        "An acknowledgement says which refusal of a guard is meant, up to when and for how many objects. One that fits nothing, is over or \
         is exceeded lets nothing pass. Take it away when its change is applied: the next one of its kind wants a look of its own.",
    ),
    (
        "adds-nothing",
        "An empty list says that the section is managed, and adds no entry. It does not take away what rules say of the section. To take nothing from \
         them, name the section in `ignore_layers`; to take away one entry, give it `state: absent` or `state: unmanaged`.",
    ),
    (
        "ambiguous-layers",
        "Two rules of equal rank say different things of one field, entry or parameter, and nothing above them decides. Which of them came first in a \
         file never counts. A more literal `match` outranks a less literal one, a profile outranks defaults, and the document itself outranks both.",
    ),
    (
        "approvals-twice",
        "The service makes a rule for any approver, called \"All Members\", of `approvals_before_merge`. Where that rule is declared among `approval_rules`, or \
         unlisted rules are deleted, every run would undo what the one before it did.",
    ),
    (
        "archived",
        "An archived project takes no changes, and cannot be moved either. Bring it back with `archived: false`; when it has moved, it can be \
         archived again.",
    ),
    (
        "ascii",
        "Topics belong to the whole installation, and later releases take only ASCII letters in them. The service does not say so: it answers with success \
         and `null`, and saves nothing of the request.",
    ),
    (
        "base",
        "Against a base, the commit that a branch started from, a plan says which differences the branch asks for and which were there before. \
         The base cannot be read: the clone is shallow or lacks the commit, Git is missing, or the manifests there have faults. Without it \
         nothing is known of whose each difference is, and everything else of the plan holds.",
    ),
    (
        "blank",
        "The service takes white space away from both ends of this value, and shows it without. A manifest that has it would differ from the \
         service for ever.",
    ),
    (
        "boolean",
        "In YAML 1.2 only `true` and `false` are booleans. Older readers also took `yes`, `no`, `on` and `off` for booleans, which is why \
         they turn up where one is meant. undrift refuses them rather than guess, because elsewhere they are ordinary text.",
    ),
    (
        "both-spellings",
        "The service knows some settings under a deprecated name and a new one. A manifest with both would say the same thing twice, and \
         which of them wins would be up to the service. Keep the new one.",
    ),
    (
        "choice",
        "The field takes one of a few words, and this is none of them. The message lists the words.",
    ),
    (
        "circular",
        "Two missing projects are each to be created from the other: as a fork, or with its members. Neither can come first.",
    ),
    (
        "control-character",
        "Control characters, NUL among them, are invisible in most editors, can take over a terminal, and cannot be stored by the service. \
         Tabs and line breaks are fine. A control character often comes from pasted text or from a file that is no text.",
    ),
    (
        "create-conflict",
        "A new project gets its first contents from one source: a readme, a template, a fork, or an import. The reference forbids to combine \
         them, and some attributes work only together with another one. These rules concern `create:`, `settings:` and `fork_of` together.",
    ),
    (
        "date",
        "Dates are written as `YYYY-MM-DD`, and the day must exist. The service refuses a day that is over; the day is taken in UTC.",
    ),
    (
        "deleting-group",
        "The group is marked for deletion, and the service removes it on its own some days later. Only an owner can restore it; an owner's run \
         does so if the group is declared.",
    ),
    (
        "deleting-project",
        "The project is marked for deletion, and the service removes it on its own some days later. Only an owner can restore it; an owner's \
         run does so if the project is declared.",
    ),
    (
        "deprecated",
        "The service still accepts this name but has a new one for it, and a later release may drop the old one. The manifest works as it \
         is; change the name when you touch it next.",
    ),
    (
        "document",
        "A manifest is made of mappings, one for each document. A list or a plain text at the top declares nothing.",
    ),
    (
        "duplicate-entry",
        "Two entries of one list are the same thing on the service: two variables with one key and scope, two members with one user, two \
         hooks with one name or URL. Only one of them could be true. The message shows both places.",
    ),
    (
        "duplicate-key",
        "A key is written twice in one mapping. Many readers keep the last value and drop the others without a word; undrift does not \
         choose. The message shows both places.",
    ),
    (
        "duplicate-profile",
        "A profile is used by its name, so each name stands for one profile among those for projects, and for one among those for groups.",
    ),
    (
        "duplicate-project",
        "Two documents declare the same group or project. The service takes paths for the same in any case, so `acme/Shop` and `acme/shop` are one. \
         Files and documents have no order, so neither could win.",
    ),
    (
        "exclusive",
        "The service refuses a request with both of these fields, so an entry cannot have both.",
    ),
    (
        "expression",
        "The service compiles this regular expression, in RE2 syntax, and refuses the change if it cannot. Look-around and backreferences do not \
         exist there. undrift tries a grammar that is nearly the same: what RE2 may take all the same is a warning.",
    ),
    (
        "extra",
        "`extra:` is for fields of the service's that undrift does not know yet; they are sent and compared as they are. A field that it \
         does know has checks and a comparison of its own, which it would lose there. Names that say which object a request is about, as \
         whom it is sent or how visible a project becomes are refused there: they would change something that no plan shows.",
    ),
    (
        "glob",
        "A glob over addresses: `PATH`, `PATH#SECTION` or `PATH#SECTION/ENTRY`, in which `*` matches within a path segment, `**` across \
         segments, `?` one character and `[...]` one of several. Guards print the address that they refuse.",
    ),
    (
        "guard",
        "A guard refuses what is rarely meant: many removals, a lost last owner, the caller's own access, a project that more people \
         see. It names the acknowledgement that lets this one object through, to be given with `--ack`. There is no switch that turns \
         all of them off.",
    ),
    (
        "hidden-variable",
        "A hidden variable is masked, and the service never shows its value again, nor takes back that it is hidden. To have one that is \
         not, remove it with `state: absent`, apply, and declare it anew.",
    ),
    (
        "hold",
        "A hold in UNDRIFT_HOLD leaves alone what somebody changed by hand in an emergency, until a day that is at most a week away. What \
         differs there is shown and not written, and `drift` does not exit with 2 for it unless `--strict` says so. A hold that is over, or \
         that matches nothing, holds nothing: take it away, or correct it. What is to stay as it is belongs into a manifest.",
    ),
    (
        "hook-url",
        "A webhook is called at an `http://` or `https://` URL, written in lower case, with a host and at most 8192 characters; the service refuses \
         others.",
    ),
    (
        "idle-rule",
        "A rule that holds for nothing declared changes nothing. Often its glob has a slip: `acme/*` is what is directly below `acme`, `acme/**` what \
         is anywhere below it, and neither is `acme` itself.",
    ),
    (
        "import-failed",
        "The service could not bring the contents that the project was created from, and says so for as long as the project is there. What \
         is in such a project is anybody's guess, so undrift leaves it alone.",
    ),
    (
        "inherited-access",
        "A user has access to a project or group through the groups above it, and the service refuses a direct membership with a lower level \
         than that. To lower it, lower the membership above.",
    ),
    (
        "kind-description",
        "A file of `--kinds` describes one collection below projects or groups: its paths, its fields, and which of these tell two entries apart. It \
         says what the service takes; what a request does follows from the operation, so that a description never makes a plan write. What \
         undrift manages already, what gives access and what the service shows only once cannot be described.",
    ),
    (
        "kind-description-place",
        "A description of `--kinds` decides which requests undrift sends. Whoever opens a merge request can change what is in the folder of the \
         manifests, so a description that is in there is not read.",
    ),
    (
        "layers",
        "What one layer says of lower ones has few forms: `uses` is a list of profiles or `{add: [...]}`.",
    ),
    (
        "literal-secret",
        "What looks like a secret is written in the manifest, where everybody who can read the repository can read it, for ever. Write where \
         it comes from instead: `{env: NAME}` or `{file: PATH}`.",
    ),
    (
        "locked-out",
        "The service lets nobody protect a branch who could not unprotect it, and then lets them neither change nor unprotect it. Administrators \
         are no exception. Levels and groups may include the token's user, so undrift says so only where all rows name other users.",
    ),
    (
        "low-share",
        "A rule that names a group needs a share of the project with that group, as developer or more. The service refuses the rule otherwise.",
    ),
    (
        "masked-value",
        "The service masks a variable in job logs only if its value can be found there for certain: one line, 8 characters or more, and \
         only letters, digits and a few signs unless the variable is raw. It refuses other values, so the apply would fail.",
    ),
    (
        "minimal-access",
        "Members with minimal access exist in top-level groups only. The service refuses the level in subgroups and projects.",
    ),
    (
        "missing",
        "The field is required: without it the entry is not known well enough to be found or created.",
    ),
    (
        "missing-field",
        "An entry that exists is managed without this field, but it cannot be created without it, and it is not there.",
    ),
    (
        "missing-file",
        "A file that a manifest names cannot be read. It must be a regular file of at most 1 MiB below the folder of `undrift.yaml` (or the \
         manifest folder, if there is none), and no symbolic link. A picture to upload must be there; a secret only where `apply` runs.",
    ),
    (
        "missing-group",
        "The group does not exist, or the token cannot see it. With `create: true` undrift creates it, the outer ones first.",
    ),
    (
        "missing-namespace",
        "The group or user that the project would be in does not exist, or the token may not see it; the service answers the same in \
         both cases. A group that is declared with `create: true` is created before what is in it.",
    ),
    (
        "missing-project",
        "The service says that the project does not exist, to a caller who sees where it would be. undrift creates it only if the \
         manifest says `create: true`, so that a slip in a path does not make a project.",
    ),
    (
        "missing-secret",
        "A reference to a secret could not be resolved: the environment variable is not set, the file cannot be read, or either is \
         empty, as it is where a pipeline lacks the variable. If empty text is meant, the manifest says so itself, with \
         `''`. A plan works without and says what it could not compare; nothing is applied before all of them are there.",
    ),
    (
        "moved-group",
        "The path leads to a group with another path: it was renamed. undrift does not follow renames that no manifest declares, because a \
         new group may take the old path at any time.",
    ),
    (
        "moved-project",
        "The path leads to a project that has another one by now. Renamed projects answer under their old path for a while; undrift \
         does not follow, because somebody else may take the old path.",
    ),
    (
        "nearly-the-same",
        "Two addresses that differ only in a `/` at the end are two addresses for the service, and mostly a slip for people. A second hook \
         beside the first would call one receiver twice, so undrift asks which one is meant.",
    ),
    (
        "needless-branches",
        "An approval rule is for all protected branches, or for those that it names. Where it is for all, the service ignores the names.",
    ),
    (
        "no-effect",
        "The service takes the field, or refuses it alone, and it changes nothing as long as another one is off: merge trains need merged results \
         pipelines, and what is said of a mirror needs the mirror. undrift does not send it until then.",
    ),
    (
        "no-manifests",
        "The folder holds no file `*.yaml` or `*.yml`, or none of them declares a group or project. Hidden folders and symbolic links are skipped, and `undrift.yaml` and `sandbox.yaml` \
         are no manifests. Emptiness is an error, because a wrong path must not look like a wish for nothing.",
    ),
    (
        "not-supported",
        "The name is reserved for something that this release cannot do yet. It is refused rather than ignored.",
    ),
    (
        "not-utf-8",
        "Manifests are UTF-8 text. A file in another encoding, or no text at all, cannot be read without guessing.",
    ),
    (
        "null",
        "A key without a value means `null`, which says neither what is wanted nor that nothing is. Leave the key out and the thing is not \
         managed; write `[]` for an empty list. Where the service can clear a field, `null` is allowed and clears it.",
    ),
    (
        "outside",
        "Several repositories can share one service: `manages` in `undrift.yaml` says which groups, projects and sections the manifests below it \
         are about. What is declared outside of it is more likely a slip, or an attempt to reach further than was reviewed, than a wish.",
    ),
    (
        "own-token",
        "The secret that is named is, or contains, the token that undrift itself works with, under whatever name or path. As the value of \
         a variable or a hook it would be readable to everyone who can change a pipeline. Create a token for the purpose.",
    ),
    (
        "params",
        "Parameters are what `{text: '...'}` fills in. They have names of letters, digits, `_`, `-` and `.`; `path`, `name`, `group` and `path_slug` are \
         there by themselves. A profile may say in `needs` which ones whoever uses it has to give.",
    ),
    (
        "path",
        "The full path of a project is its namespace and its own name, as in its address: `acme/shop`. Parts are made of letters, digits, \
         `.`, `-` and `_`; a project that may be created also follows the stricter rules for new ones.",
    ),
    (
        "pattern",
        "The text does not have the form that the service accepts here. The hint says what it looks like.",
    ),
    (
        "previously",
        "`previously` names the paths that a group or project had before, so that it is found there, renamed and moved, and never created \
         anew. A path leads to one thing at a time: what is declared has to say, before a run and after it, what is where. Two that change \
         places look the same before and after, so one of them has to go elsewhere first. Take `previously` away when it is done.",
    ),
    (
        "profile-circle",
        "A profile takes in the profiles that it uses, and what it takes in outranks nothing of its own. In a circle each would be below itself.",
    ),
    (
        "quote",
        "The field is text, but without quotes YAML reads a number or a boolean, and would change it: `1.10` becomes `1.1`, `0x1F` becomes \
         31. Put it in quotes.",
    ),
    (
        "reference",
        "A secret is written as where it comes from: `{env: NAME}` for an environment variable, or `{file: PATH}` for a file inside the \
         manifest folder. Exactly one of the two, and for some fields nothing else, because a literal secret in Git is known to everybody.",
    ),
    (
        "release",
        "The field, or the level, is not in the release of the service: it came later, or is gone. The service would ignore it without a \
         word. `service.release` in `undrift.yaml` says the release where nothing is asked; a run that has to know asks the service.",
    ),
    (
        "reserved-variable",
        "Environment variables whose names start with `CI_`, `GITLAB_` or `UNDRIFT_` belong to the CI system or to undrift. Some of them \
         hold tokens, undrift's own among them, and no manifest may send them anywhere. `--allow-env` limits manifests further.",
    ),
    (
        "syntax",
        "The file is not well-formed YAML. Reading goes on with the next document, and other files are checked all the same.",
    ),
    (
        "template",
        "`{text: '...'}` is filled in for each group or project: `{name}` stands for what it names, `{{` and `}}` for braces. There are no functions, no \
         conditions, no secrets and no environment variables.",
    ),
    (
        "tier",
        "The field exists only on a higher tier of the service than `service.tier` in `undrift.yaml` says. The service would ignore the \
         field without a word, and every plan would show the same change again.",
    ),
    (
        "too-large",
        "A manifest has at most 1 MiB, and a folder at most 200,000 manifests of 256 MiB in all.",
    ),
    (
        "too-many-faults",
        "One file has more faults than are worth reading. Correct the first ones; the others are often their followers.",
    ),
    (
        "too-visible",
        "What a project shows of its merge requests and of its pipelines may not be more than what it shows of its repository, and a project or group may \
         not be more visible than the group that it is in. The service refuses a request after which that would be so, or lowers the visibility without \
         a word; so all levels that depend on each other have to be declared together.",
    ),
    (
        "type",
        "The value is of another type than the field: a word where a list is needed, a mapping where a number is needed.",
    ),
    (
        "unknown-entry",
        "An entry names one of another section of the same group or project, such as the protected branches of an approval rule, and nothing \
         there has this name: neither on the service nor in the manifest.",
    ),
    (
        "unknown-field",
        "undrift knows no such field here. Names are the service's own. A misspelt field that was ignored would never be applied, so it is \
         an error; a field that is too new for undrift may stand below `extra:`.",
    ),
    (
        "unknown-group",
        "The service knows no group with this path, or the token cannot see it. Paths are compared in any case.",
    ),
    (
        "unknown-profile",
        "What stands in `uses` are names of `kind: Profile` documents below the same root. A profile is for projects unless it says `for: Group`.",
    ),
    (
        "unknown-project",
        "The service knows no project with this path, or the token cannot see it. Paths are compared in any case; one that leads to a \
         renamed project is not followed.",
    ),
    (
        "unknown-user",
        "The service knows no user with this name. Names are compared in any case; deleted users are not found.",
    ),
    (
        "unlimited",
        "The switch is declared without what limits it, and what the service takes in the place of the limit is everything: a clean-up policy of the \
         container registry that is on and says no `name_regex` removes tags of any name. Write the limit down, also where it is that everything is \
         meant.",
    ),
    (
        "unlisted",
        "`unlisted` says what happens to live objects that a section does not list. Without the section there is no list to compare with, \
         and everything would count as unlisted.",
    ),
    (
        "unreadable",
        "The system did not let undrift read a file or a folder. What it declares is unknown, so nothing is planned.",
    ),
    ("value", "The value is outside the limits of the field."),
    (
        "yaml-key",
        "Keys are text. YAML reads `1`, `true` and `null` as something else, so two different keys could look the same.",
    ),
    (
        "yaml-limit",
        "Aliases let a few lines stand for gigabytes, and deep nesting can exhaust a reader. A file may stand for 16 MiB of text and \
         1,000,000 values at most, and nest 64 deep.",
    ),
    (
        "yaml-number",
        "JSON, which the service speaks, has neither infinity nor numbers beyond 64 bits. Text that looks like one needs quotes.",
    ),
    (
        "yaml-tag",
        "Only the tags of the YAML core schema are known. Other tools use their own for secrets; here a secret is a reference.",
    ),
];

/// What lies behind a code.
pub fn explain(code: &str) -> Option<&'static str> {
    CODES.iter().find(|(known, _)| *known == code).map(|(_, text)| *text)
}

impl Diagnostic {
    /// What lies behind it.
    pub fn explanation(&self) -> Option<&'static str> {
        explain(self.code)
    }
}

#[cfg(test)]
mod tests {
    use super::CODES;

    #[test]
    fn codes_are_in_order_and_explained() {
        assert!(CODES.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert!(CODES.iter().all(|(_, text)| text.ends_with('.') && !text.contains("  ")));
    }
}
