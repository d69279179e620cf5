//! Of each fault that can be shown in a few lines an example, and the same as it should be.
//!
//! A test gives all of them to `undrift check`. A line such as `# undrift.yaml` begins a file; what
//! has none is one manifest.

/// An example of a fault.
#[derive(Debug)]
pub struct Example {
    /// The code of the fault.
    pub code: &'static str,
    /// What has the fault, and no other error.
    pub wrong: &'static str,
    /// The same, mended.
    pub right: &'static str,
}

/// The example of `code`, if there is one.
pub fn of(code: &str) -> Option<&'static Example> {
    EXAMPLES.iter().find(|example| example.code == code)
}

/// Every example, in the order of the codes.
pub static EXAMPLES: &[Example] = &[
    Example {
        code: "absent",
        wrong: "\
kind: Project
path: acme/shop
variables:
  - {key: OLD, value: x, state: absent}
",
        right: "\
kind: Project
path: acme/shop
variables:
  - {key: OLD, state: absent}
",
    },
    Example {
        code: "adds-nothing",
        wrong: "\
kind: Defaults
match: {path: acme/**}
variables:
  - {key: LEVEL, value: info}
---
kind: Project
path: acme/shop
variables: []
",
        right: "\
kind: Defaults
match: {path: acme/**}
variables:
  - {key: LEVEL, value: info}
---
kind: Project
path: acme/shop
ignore_layers: [variables]
variables: []
",
    },
    Example {
        code: "ambiguous-layers",
        wrong: "\
kind: Defaults
match: {path: acme/*}
settings: {merge_method: ff}
---
kind: Defaults
match: {path: '*/shop'}
settings: {merge_method: merge}
---
kind: Project
path: acme/shop
archived: false
",
        right: "\
kind: Defaults
match: {path: acme/*}
settings: {merge_method: ff}
---
kind: Defaults
match: {path: '*/shop'}
settings: {merge_method: merge}
---
kind: Project
path: acme/shop
settings: {merge_method: merge}
",
    },
    Example {
        code: "approvals-twice",
        wrong: "\
kind: Project
path: acme/shop
settings: {approvals_before_merge: 2}
approval_rules: [{name: All Members, rule_type: any_approver, approvals_required: 1}]
",
        right: "\
kind: Project
path: acme/shop
approval_rules: [{name: All Members, rule_type: any_approver, approvals_required: 1}]
",
    },
    Example {
        code: "ascii",
        wrong: "\
kind: Project
path: acme/shop
settings: {topics: [café]}
",
        right: "\
kind: Project
path: acme/shop
settings: {topics: [cafe]}
",
    },
    Example {
        code: "blank",
        wrong: "\
kind: Project
path: acme/shop
hooks:
  - {url: 'https://ci.example.org/build '}
",
        right: "\
kind: Project
path: acme/shop
hooks:
  - {url: 'https://ci.example.org/build'}
",
    },
    Example {
        code: "boolean",
        wrong: "\
kind: Project
path: acme/shop
settings: {lfs_enabled: yes}
",
        right: "\
kind: Project
path: acme/shop
settings: {lfs_enabled: true}
",
    },
    Example {
        code: "both-spellings",
        wrong: "\
kind: Project
path: acme/shop
settings:
  issues_enabled: true
  issues_access_level: private
",
        right: "\
kind: Project
path: acme/shop
settings:
  issues_access_level: private
",
    },
    Example {
        code: "choice",
        wrong: "\
kind: Project
path: acme/shop
settings: {visibility: secret}
",
        right: "\
kind: Project
path: acme/shop
settings: {visibility: private}
",
    },
    Example {
        code: "control-character",
        wrong: "\
kind: Project
path: acme/shop
settings: {description: \"The shop\\a\"}
",
        right: "\
kind: Project
path: acme/shop
settings: {description: \"The shop\"}
",
    },
    Example {
        code: "create-conflict",
        wrong: "\
kind: Project
path: acme/shop
create: {initialize_with_readme: true, template_name: rails}
",
        right: "\
kind: Project
path: acme/shop
create: {template_name: rails}
",
    },
    Example {
        code: "date",
        wrong: "\
kind: Project
path: acme/shop
members:
  - {user: alice, access_level: developer, expires_at: 2099-02-30}
",
        right: "\
kind: Project
path: acme/shop
members:
  - {user: alice, access_level: developer, expires_at: 2099-02-28}
",
    },
    Example {
        code: "deprecated",
        wrong: "\
kind: Project
path: acme/shop
settings: {issues_enabled: true}
",
        right: "\
kind: Project
path: acme/shop
settings: {issues_access_level: enabled}
",
    },
    Example {
        code: "document",
        wrong: "\
- acme/shop
",
        right: "\
kind: Project
path: acme/shop
archived: false
",
    },
    Example {
        code: "duplicate-entry",
        wrong: "\
kind: Project
path: acme/shop
members:
  - {user: alice, access_level: developer}
  - {user: Alice, access_level: owner}
",
        right: "\
kind: Project
path: acme/shop
members:
  - {user: alice, access_level: owner}
",
    },
    Example {
        code: "duplicate-key",
        wrong: "\
kind: Project
path: acme/shop
settings: {visibility: private}
settings: {merge_method: ff}
",
        right: "\
kind: Project
path: acme/shop
settings: {visibility: private, merge_method: ff}
",
    },
    Example {
        code: "duplicate-profile",
        wrong: "\
kind: Profile
name: service
settings: {merge_method: ff}
---
kind: Profile
name: service
settings: {lfs_enabled: true}
---
kind: Project
path: acme/shop
uses: [service]
",
        right: "\
kind: Profile
name: service
settings: {merge_method: ff, lfs_enabled: true}
---
kind: Project
path: acme/shop
uses: [service]
",
    },
    Example {
        code: "duplicate-project",
        wrong: "\
kind: Project
path: acme/shop
archived: false
---
kind: Project
path: acme/Shop
variables: []
",
        right: "\
kind: Project
path: acme/shop
archived: false
variables: []
",
    },
    Example {
        code: "exclusive",
        wrong: "\
kind: Project
path: acme/shop
remote_mirrors:
  - {url: https://git.example.org/shop.git, only_protected_branches: true, mirror_branch_regex: ^main}
",
        right: "\
kind: Project
path: acme/shop
remote_mirrors:
  - {url: https://git.example.org/shop.git, mirror_branch_regex: ^main}
",
    },
    Example {
        code: "expression",
        wrong: "\
kind: Project
path: acme/shop
push_rule: {commit_message_regex: '^(?!WIP)'}
",
        right: "\
kind: Project
path: acme/shop
push_rule: {commit_message_regex: '^(feat|fix): '}
",
    },
    Example {
        code: "extra",
        wrong: "\
kind: Project
path: acme/shop
variables:
  - {key: LEVEL, value: info, extra: {raw: true}}
",
        right: "\
kind: Project
path: acme/shop
variables:
  - {key: LEVEL, value: info, raw: true}
",
    },
    Example {
        code: "glob",
        wrong: "\
kind: Project
path: acme/shop
variables:
  - {key: 'TF_[', state: unmanaged}
",
        right: "\
kind: Project
path: acme/shop
variables:
  - {key: 'TF_*', state: unmanaged}
",
    },
    Example {
        code: "hidden-variable",
        wrong: "\
kind: Project
path: acme/shop
variables:
  - {key: TOKEN, value: {env: TOKEN}, masked_and_hidden: true, masked: false}
",
        right: "\
kind: Project
path: acme/shop
variables:
  - {key: TOKEN, value: {env: TOKEN}, masked_and_hidden: true}
",
    },
    Example {
        code: "hook-url",
        wrong: "\
kind: Project
path: acme/shop
hooks:
  - {url: ci.example.org/build}
",
        right: "\
kind: Project
path: acme/shop
hooks:
  - {url: https://ci.example.org/build}
",
    },
    Example {
        code: "idle-rule",
        wrong: "\
kind: Defaults
match: {path: acme}
settings: {merge_method: ff}
---
kind: Project
path: acme/shop
archived: false
",
        right: "\
kind: Defaults
match: {path: acme/**}
settings: {merge_method: ff}
---
kind: Project
path: acme/shop
archived: false
",
    },
    Example {
        code: "layers",
        wrong: "\
kind: Project
path: acme/shop
uses: {remove: [service]}
",
        right: "\
kind: Project
path: acme/shop
uses: []
",
    },
    Example {
        code: "literal-secret",
        wrong: "\
kind: Project
path: acme/shop
variables:
  - {key: TOKEN, value: glpat-0123456789abcdefghij, masked: true}
",
        right: "\
kind: Project
path: acme/shop
variables:
  - {key: TOKEN, value: {env: SHOP_TOKEN}, masked: true}
",
    },
    Example {
        code: "masked-value",
        wrong: "\
kind: Project
path: acme/shop
variables:
  - {key: PIN, value: '1234', masked: true}
",
        right: "\
kind: Project
path: acme/shop
variables:
  - {key: PIN, value: {env: SHOP_PIN}, masked: true}
",
    },
    Example {
        code: "missing",
        wrong: "\
kind: Project
path: acme/shop
variables:
  - {value: info}
",
        right: "\
kind: Project
path: acme/shop
variables:
  - {key: LEVEL, value: info}
",
    },
    Example {
        code: "missing-file",
        wrong: "\
kind: Project
path: acme/shop
variables:
  - {key: CERTIFICATE, value: {file: not-there.pem}}
",
        right: "\
kind: Project
path: acme/shop
variables:
  - {key: CERTIFICATE, value: {env: SHOP_CERTIFICATE}}
",
    },
    Example {
        code: "needless-branches",
        wrong: "\
kind: Project
path: acme/shop
approval_rules:
  - {name: Security, approvals_required: 1, protected_branches: [main], applies_to_all_protected_branches: true}
",
        right: "\
kind: Project
path: acme/shop
approval_rules:
  - {name: Security, approvals_required: 1, protected_branches: [main]}
",
    },
    Example {
        code: "no-effect",
        wrong: "\
kind: Project
path: acme/shop
settings: {merge_pipelines_enabled: false, merge_trains_enabled: true}
",
        right: "\
kind: Project
path: acme/shop
settings: {merge_pipelines_enabled: true, merge_trains_enabled: true}
",
    },
    Example {
        code: "not-supported",
        wrong: "\
kind: Project
path: acme/shop
inherit: false
",
        right: "\
kind: Project
path: acme/shop
ignore_layers: true
",
    },
    Example {
        code: "null",
        wrong: "\
kind: Project
path: acme/shop
variables:
",
        right: "\
kind: Project
path: acme/shop
variables: []
",
    },
    Example {
        code: "outside",
        wrong: "\
# undrift.yaml
version: 1
manages: [{path: 'acme/**'}]
# shop.yaml
kind: Project
path: other/shop
",
        right: "\
# undrift.yaml
version: 1
manages: [{path: 'acme/**'}]
# shop.yaml
kind: Project
path: acme/shop
",
    },
    Example {
        code: "params",
        wrong: "\
kind: Project
path: acme/shop
params: {name: store}
settings: {description: {text: 'The {name}'}}
",
        right: "\
kind: Project
path: acme/shop
params: {title: store}
settings: {description: {text: 'The {title}'}}
",
    },
    Example {
        code: "path",
        wrong: "\
kind: Project
path: shop
",
        right: "\
kind: Project
path: acme/shop
",
    },
    Example {
        code: "pattern",
        wrong: "\
kind: Project
path: acme/shop
variables:
  - {key: LOG LEVEL, value: info}
",
        right: "\
kind: Project
path: acme/shop
variables:
  - {key: LOG_LEVEL, value: info}
",
    },
    Example {
        code: "previously",
        wrong: "\
kind: Project
path: acme/shop
previously: [acme/shop]
",
        right: "\
kind: Project
path: acme/shop
previously: [acme/store]
",
    },
    Example {
        code: "profile-circle",
        wrong: "\
kind: Profile
name: service
uses: [base]
---
kind: Profile
name: base
uses: [service]
---
kind: Project
path: acme/shop
uses: [service]
",
        right: "\
kind: Profile
name: service
uses: [base]
---
kind: Profile
name: base
settings: {merge_method: ff}
---
kind: Project
path: acme/shop
uses: [service]
",
    },
    Example {
        code: "quote",
        wrong: "\
kind: Project
path: acme/shop
settings: {description: 1.10}
",
        right: "\
kind: Project
path: acme/shop
settings: {description: '1.10'}
",
    },
    Example {
        code: "reference",
        wrong: "\
kind: Project
path: acme/shop
hooks:
  - {url: https://ci.example.org/build, token: just-text}
",
        right: "\
kind: Project
path: acme/shop
hooks:
  - {url: https://ci.example.org/build, token: {env: HOOK_TOKEN}}
",
    },
    Example {
        code: "release",
        wrong: "\
# undrift.yaml
version: 1
service: {release: '15.8'}
# shop.yaml
kind: Project
path: acme/shop
settings: {emails_enabled: false}
",
        right: "\
# undrift.yaml
version: 1
service: {release: '18.2'}
# shop.yaml
kind: Project
path: acme/shop
settings: {emails_enabled: false}
",
    },
    Example {
        code: "reserved-variable",
        wrong: "\
kind: Project
path: acme/shop
variables:
  - {key: TOKEN, value: {env: CI_JOB_TOKEN}}
",
        right: "\
kind: Project
path: acme/shop
variables:
  - {key: TOKEN, value: {env: SHOP_TOKEN}}
",
    },
    Example {
        code: "syntax",
        wrong: "\
kind: Project
path: acme/shop
settings: {visibility: private
",
        right: "\
kind: Project
path: acme/shop
settings: {visibility: private}
",
    },
    Example {
        code: "template",
        wrong: "\
kind: Project
path: acme/shop
settings: {description: {text: 'The {port}'}}
",
        right: "\
kind: Project
path: acme/shop
params: {port: 8080}
settings: {description: {text: 'The {port}'}}
",
    },
    Example {
        code: "tier",
        wrong: "\
# undrift.yaml
version: 1
service: {tier: free}
# shop.yaml
kind: Project
path: acme/shop
push_rule: {prevent_secrets: true}
",
        right: "\
# undrift.yaml
version: 1
service: {tier: premium}
# shop.yaml
kind: Project
path: acme/shop
push_rule: {prevent_secrets: true}
",
    },
    Example {
        code: "too-visible",
        wrong: "\
kind: Project
path: acme/shop
settings: {repository_access_level: private, merge_requests_access_level: enabled}
",
        right: "\
kind: Project
path: acme/shop
settings: {repository_access_level: private, merge_requests_access_level: private}
",
    },
    Example {
        code: "type",
        wrong: "\
kind: Project
path: acme/shop
settings: {topics: shop}
",
        right: "\
kind: Project
path: acme/shop
settings: {topics: [shop]}
",
    },
    Example {
        code: "unknown-field",
        wrong: "\
kind: Project
path: acme/shop
settings: {merge_mehtod: ff}
",
        right: "\
kind: Project
path: acme/shop
settings: {merge_method: ff}
",
    },
    Example {
        code: "unknown-profile",
        wrong: "\
kind: Project
path: acme/shop
uses: [service]
",
        right: "\
kind: Profile
name: service
settings: {merge_method: ff}
---
kind: Project
path: acme/shop
uses: [service]
",
    },
    Example {
        code: "unlimited",
        wrong: "\
kind: Project
path: acme/shop
settings:
  container_expiration_policy: {enabled: true, older_than: 14d}
",
        right: "\
kind: Project
path: acme/shop
settings:
  container_expiration_policy: {enabled: true, older_than: 14d, name_regex: '^review-.*'}
",
    },
    Example {
        code: "unlisted",
        wrong: "\
kind: Project
path: acme/shop
unlisted: {hooks: delete}
",
        right: "\
kind: Project
path: acme/shop
hooks: []
unlisted: {hooks: delete}
",
    },
    Example {
        code: "value",
        wrong: "\
kind: Project
path: acme/shop
settings: {build_timeout: 0}
",
        right: "\
kind: Project
path: acme/shop
settings: {build_timeout: 3600}
",
    },
    Example {
        code: "yaml-key",
        wrong: "\
kind: Project
path: acme/shop
variables:
  - {key: LEVEL, null: info}
",
        right: "\
kind: Project
path: acme/shop
variables:
  - {key: LEVEL, value: info}
",
    },
    Example {
        code: "yaml-number",
        wrong: "\
kind: Project
path: acme/shop
settings: {build_timeout: .inf}
",
        right: "\
kind: Project
path: acme/shop
settings: {build_timeout: 3600}
",
    },
    Example {
        code: "yaml-tag",
        wrong: "\
kind: Project
path: acme/shop
variables:
  - {key: TOKEN, value: !vault SHOP_TOKEN}
",
        right: "\
kind: Project
path: acme/shop
variables:
  - {key: TOKEN, value: {env: SHOP_TOKEN}}
",
    },
];
