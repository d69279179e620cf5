// What a user of @gitbeaker/rest does, against the embedded service; every step asserts its effect.
//
// The address and the administrator's token come in UNDRIFT_CLIENT_URL and UNDRIFT_CLIENT_TOKEN.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { Gitlab } = require('@gitbeaker/rest');

const host = process.env.UNDRIFT_CLIENT_URL;
const token = process.env.UNDRIFT_CLIENT_TOKEN;
const root = new Gitlab({ host, token });
let number = 0;

const newUser = () => {
  const name = `js-user${(number += 1)}`;
  return root.Users.create({ username: name, name, email: `${name}@mail.example`, password: 'long enough' });
};

const newGroup = () => {
  const name = `js-group${(number += 1)}`;
  return root.Groups.create(name, name, { visibility: 'public' });
};

/** A fresh group with a project in it. */
const fresh = async () => {
  const group = await newGroup();
  const project = await root.Projects.create({ name: 'Shop', namespaceId: group.id, visibility: 'public' });
  return { group, project };
};

const refuses = (status, text, call) =>
  assert.rejects(call, (error) => {
    assert.equal(error.cause.response.status, status);
    assert.match(JSON.stringify(error.cause.description ?? ''), text);
    return true;
  });

const ids = (things) => things.map((thing) => thing.id);

test('users', async () => {
  assert.equal((await root.Users.showCurrentUser()).username, 'root');
  assert.match((await root.Metadata.show()).version, /^15\.8\./);
  await refuses(401, /401 Unauthorized/, () => new Gitlab({ host, token: 'wrong' }).Users.showCurrentUser());
  const user = await newUser();
  assert.deepEqual(ids(await root.Users.all({ username: user.username })), [user.id]);
  assert.equal((await root.Users.edit(user.id, { name: 'Other' })).name, 'Other');
  assert.deepEqual(await root.Users.allMemberships(user.id, { type: 'Project' }), []);
  await root.Users.remove(user.id);
  await refuses(404, /404 User Not Found/, () => root.Users.show(user.id));
});

test('groups', async () => {
  const { group, project } = await fresh();
  const below = await root.Groups.create('Below', 'below', { parentId: group.id });
  const other = await newGroup();
  assert.equal((await root.Groups.show(`${group.full_path}/below`)).id, below.id);
  assert.deepEqual(ids(await root.Groups.allSubgroups(group.id)), [below.id]);
  assert.deepEqual(ids(await root.Groups.allProjects(group.id, { includeSubgroups: true })), [project.id]);
  // A search looks at full paths too.
  assert.deepEqual(ids(await root.Groups.all({ search: group.path, skipGroups: [group.id] })), [below.id]);
  assert.equal((await root.Projects.share(project.id, other.id, 30)).group_access, 30);
  assert.deepEqual(ids(await root.Groups.allSharedProjects(other.id)), [project.id]);
  await root.Projects.unshare(project.id, other.id);
  await root.Groups.remove(group.id);
  await refuses(404, /404 Project Not Found/, () => root.Projects.show(project.id));
});

test('members', async () => {
  const { group, project } = await fresh();
  const user = await newUser();
  const member = await root.GroupMembers.add(group.id, 30, { userId: user.id, expiresAt: '2999-01-01' });
  assert.deepEqual([member.access_level, member.expires_at], [30, '2999-01-01']);
  assert.equal((await root.GroupMembers.edit(group.id, user.id, 20)).access_level, 20);
  const all = { includeInherited: true, userIds: [user.id] };
  assert.deepEqual(ids(await root.ProjectMembers.all(project.id, all)), [user.id]);
  assert.deepEqual(await root.ProjectMembers.all(project.id), []);
  assert.equal((await root.ProjectMembers.add(project.id, 40, { userId: user.id })).access_level, 40);
  assert.equal((await root.ProjectMembers.show(project.id, user.id, { includeInherited: true })).access_level, 40);
  assert.equal((await root.GroupMembers.setOverrideFlag(group.id, user.id)).override, true);
  assert.equal((await root.GroupMembers.allBillableMemberships(group.id, user.id)).length, 2);
  assert.deepEqual(await root.GroupMembers.allPending(group.id), []);
  await root.GroupMembers.remove(group.id, user.id);
  assert.deepEqual(await root.ProjectMembers.all(project.id), [], 'removal reaches the projects below');
});

test('projects', async () => {
  const { group, project } = await fresh();
  const edited = await root.Projects.edit(project.id, {
    mergeMethod: 'ff',
    topics: ['b', 'a'],
    wikiAccessLevel: 'disabled',
    containerExpirationPolicyAttributes: { keepN: 5 },
  });
  assert.deepEqual([edited.merge_method, edited.topics, edited.wiki_enabled], ['ff', ['a', 'b'], false]);
  assert.equal(edited.container_expiration_policy.keep_n, 5);
  const picture = { content: new Blob(['x']), filename: 'logo.png' };
  assert.match((await root.Projects.uploadAvatar(project.id, picture)).avatar_url, /logo\.png$/);
  await root.Projects.removeAvatar(project.id);
  const camel = new Gitlab({ host, token, camelize: true });
  const shown = await camel.Projects.show(`${group.path}/shop`, { statistics: true });
  assert.deepEqual([shown.avatarUrl, shown.statistics.commitCount], [null, 0]);
  assert.equal((await root.Projects.star(project.id)).star_count, 1);
  await refuses(304, /./, () => root.Projects.star(project.id));
  assert.equal((await root.Projects.allStarrers(project.id))[0].user.username, 'root');
  assert.equal((await root.Projects.archive(project.id)).archived, true);
  assert.equal((await root.Projects.unarchive(project.id)).archived, false);
  await root.Projects.housekeeping(project.id);
  const fork = await root.Projects.fork(project.id, { namespacePath: (await newGroup()).path, path: 'copy', name: 'Copy' });
  assert.deepEqual([fork.import_status, fork.forked_from_project.id], ['scheduled', project.id]);
  assert.deepEqual(ids(await root.Projects.allForks(project.id)), [fork.id]);
  assert.equal((await root.Projects.transfer(fork.id, group.id)).namespace.id, group.id);
  await root.Projects.remove(project.id);
  await refuses(404, /404 Project Not Found/, () => root.Projects.show(project.id));
});

test('lists', async () => {
  const { group } = await fresh();
  const wanted = [];
  for (let n = 0; n < 5; n += 1) {
    const made = await root.Projects.create({ name: `p${n}`, namespaceId: group.id, topics: [group.path] });
    wanted.push(made.id);
  }
  const found = { topic: group.path, sort: 'asc', perPage: 2 };
  assert.deepEqual(ids(await root.Projects.all(found)), wanted);
  assert.deepEqual(ids(await root.Projects.all({ ...found, pagination: 'keyset', orderBy: 'id' })), wanted);
  const { data, paginationInfo } = await root.Projects.all({ ...found, page: 2, showExpanded: true });
  assert.deepEqual(ids(data), wanted.slice(2, 4));
  assert.deepEqual(paginationInfo, { total: 5, next: 3, current: 2, previous: 1, perPage: 2, totalPages: 3 });
});

test('variables', async () => {
  const { project } = await fresh();
  const variables = root.ProjectVariables;
  await variables.create(project.id, 'K', 'one', { environmentScope: 'prod', variableType: 'file' });
  await variables.create(project.id, 'K', 'two');
  await refuses(409, /multiple variables/, () => variables.show(project.id, 'K'));
  const filter = { environment_scope: 'prod' };
  assert.equal((await variables.edit(project.id, 'K', 'three', { filter, protected: true })).protected, true);
  assert.equal((await variables.show(project.id, 'K', { filter })).value, 'three');
  await variables.remove(project.id, 'K', { filter });
  assert.deepEqual((await variables.all(project.id)).map((one) => [one.value, one.environment_scope]), [['two', '*']]);
});

test('hooks and push rules', async () => {
  const { project } = await fresh();
  const hook = await root.ProjectHooks.add(project.id, 'https://ci.example/x', { pushEvents: false, token: 'hidden' });
  assert.deepEqual([hook.push_events, 'token' in hook], [false, false]);
  const edited = await root.ProjectHooks.edit(project.id, hook.id, 'https://ci.example/y', { jobEvents: true });
  assert.deepEqual([edited.url, edited.job_events, edited.push_events], ['https://ci.example/y', true, false]);
  await root.ProjectHooks.remove(project.id, hook.id);
  assert.deepEqual(await root.ProjectHooks.all(project.id), []);
  await root.ProjectPushRules.create(project.id, { denyDeleteTag: true, maxFileSize: 3 });
  const rule = await root.ProjectPushRules.edit(project.id, { commitMessageRegex: '^fix' });
  assert.deepEqual([rule.deny_delete_tag, rule.max_file_size, rule.commit_message_regex], [true, 3, '^fix']);
  await root.ProjectPushRules.remove(project.id);
});

test('branches, tags and files', async () => {
  const { project } = await fresh();
  const file = 'dir/a.txt';
  await root.RepositoryFiles.create(project.id, file, 'main', 'one', 'first');
  assert.equal((await root.RepositoryFiles.show(project.id, file, 'main')).content, 'b25l');
  await refuses(400, /already exists/, () => root.RepositoryFiles.create(project.id, file, 'main', 'one', 'again'));
  await root.RepositoryFiles.edit(project.id, file, 'main', 'two', 'second');
  const branch = await root.Branches.create(project.id, 'next', 'main');
  assert.deepEqual([branch.default, branch.commit.title], [false, 'second']);
  await root.Tags.create(project.id, 'v1', 'next');
  assert.deepEqual((await root.Tags.all(project.id)).map((tag) => tag.name), ['v1']);
  await root.Tags.remove(project.id, 'v1');
  await root.Branches.remove(project.id, 'next');
  assert.deepEqual((await root.Branches.all(project.id)).map((one) => one.name), ['main']);
  await root.RepositoryFiles.remove(project.id, file, 'main', 'third');
});
