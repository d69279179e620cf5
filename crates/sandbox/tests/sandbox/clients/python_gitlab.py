"""What a user of python-gitlab does, against the embedded service; every step asserts its effect.

The address and the administrator's token come in UNDRIFT_CLIENT_URL and UNDRIFT_CLIENT_TOKEN.
"""

import io
import itertools
import os
import unittest

import gitlab
from gitlab.exceptions import (
    GitlabAuthenticationError,
    GitlabCreateError,
    GitlabDeleteError,
    GitlabGetError,
    GitlabListError,
    GitlabUpdateError,
)

URL = os.environ["UNDRIFT_CLIENT_URL"]
ROOT = gitlab.Gitlab(URL, private_token=os.environ["UNDRIFT_CLIENT_TOKEN"])
NUMBERS = itertools.count(1)


def new_user():
    name = f"user{next(NUMBERS)}"
    return ROOT.users.create({"username": name, "name": name.title(), "email": f"{name}@mail.example", "password": "long enough"})


def new_group(**more):
    name = f"group{next(NUMBERS)}"
    return ROOT.groups.create({"name": name, "path": name, "visibility": "public", **more})


def client_of(user):
    token = user.personal_access_tokens.create({"name": "test", "scopes": ["api"]}).token
    return gitlab.Gitlab(URL, private_token=token)


def ids(things):
    return [thing.id for thing in things]


class Case(unittest.TestCase):
    """A fresh group with a project for each test."""

    def setUp(self):
        self.group = new_group()
        self.project = ROOT.projects.create({"name": "Shop", "namespace_id": self.group.id, "visibility": "public"})

    def refuses(self, error, status, text, call):
        with self.assertRaises(error) as raised:
            call()
        self.assertEqual(raised.exception.response_code, status)
        self.assertIn(text, str(raised.exception.error_message))

    def again(self):
        return ROOT.projects.get(self.project.id)


class Users(Case):
    def test_who_calls(self):
        ROOT.auth()
        self.assertEqual(ROOT.user.username, "root")
        self.assertTrue(ROOT.version()[0].startswith("15.8."))
        self.assertIn("plan", ROOT.get_license())
        gitlab.Gitlab(URL, oauth_token=os.environ["UNDRIFT_CLIENT_TOKEN"]).auth()
        wrong = gitlab.Gitlab(URL, private_token="wrong")
        self.refuses(GitlabAuthenticationError, 401, "401 Unauthorized", wrong.auth)

    def test_users_come_and_go(self):
        user = new_user()
        self.assertEqual(ids(ROOT.users.list(username=user.username.upper())), [user.id])
        self.assertEqual(ids(ROOT.users.list(search=user.email)), [user.id])
        same = {"username": "other", "name": "x", "email": user.email, "password": "long enough"}
        self.refuses(GitlabCreateError, 409, "Email has already been taken", lambda: ROOT.users.create(same))
        user.block()
        self.assertIn(user.id, ids(ROOT.users.list(blocked=True)))
        user.unblock()
        user.name = "Somebody Else"
        user.save()
        self.assertEqual(ROOT.users.get(user.id).name, "Somebody Else")
        user.delete()
        self.refuses(GitlabGetError, 404, "404 User Not Found", lambda: ROOT.users.get(user.id))

    def test_sudo_and_tokens(self):
        user = new_user()
        made = ROOT.projects.create({"name": "theirs"}, sudo=user.username)
        self.assertEqual(made.namespace["path"], user.username)
        theirs = client_of(user)
        self.assertEqual(ids(theirs.projects.list(owned=True)), [made.id])
        self.refuses(GitlabListError, 403, "sudo", lambda: theirs.projects.list(sudo="root"))
        theirs.personal_access_tokens.get("self").delete()
        self.refuses(GitlabAuthenticationError, 401, "", theirs.auth)


class Groups(Case):
    def test_a_hierarchy(self):
        below = ROOT.groups.create({"name": "Below", "path": "below", "parent_id": self.group.id})
        deep = ROOT.groups.create({"name": "Deep", "path": "deep", "parent_id": below.id})
        self.assertEqual(ids(self.group.subgroups.list()), [below.id])
        self.assertEqual(ids(self.group.descendant_groups.list(order_by="id")), [below.id, deep.id])
        self.assertEqual(ids(self.group.projects.list()), [self.project.id])
        deep.transfer(self.group.id)
        self.assertEqual(ROOT.groups.get(f"{self.group.full_path}/deep").id, deep.id)
        self.group.delete()
        self.refuses(GitlabGetError, 404, "404 Group Not Found", lambda: ROOT.groups.get(deep.id))

    def test_settings(self):
        self.group.project_creation_level = "maintainer"
        self.group.lfs_enabled = False
        self.group.save()
        stored = ROOT.groups.get(self.group.id)
        self.assertEqual((stored.project_creation_level, stored.lfs_enabled), ("maintainer", False))
        self.group.customattributes.set("team", "red")
        self.assertEqual(ids(ROOT.groups.list(custom_attributes={"team": "red"})), [self.group.id])

    def test_invitations(self):
        invited = new_group()
        self.group.share(invited.id, gitlab.const.AccessLevel.DEVELOPER)
        self.assertEqual(ROOT.groups.get(self.group.id).shared_with_groups[0]["group_id"], invited.id)
        self.group.unshare(invited.id)
        self.project.share(invited.id, gitlab.const.AccessLevel.REPORTER, expires_at="2999-01-01")
        self.assertEqual(self.again().shared_with_groups[0]["group_access_level"], 20)
        self.assertEqual(ids(invited.shared_projects.list()), [self.project.id])
        self.project.unshare(invited.id)
        self.refuses(GitlabDeleteError, 404, "404 Group Link Not Found", lambda: self.project.unshare(invited.id))


class Members(Case):
    def test_of_a_project(self):
        user, other = new_user(), new_user()
        member = self.project.members.create({"user_id": user.id, "access_level": 30, "expires_at": "2999-01-01"})
        self.assertEqual((member.access_level, member.expires_at, member.created_by["username"]), (30, "2999-01-01", "root"))
        member.access_level = 40
        member.save()
        self.assertEqual(self.project.members.get(user.id).access_level, 40)
        self.group.members.create({"user_id": other.id, "access_level": 20})
        self.assertEqual(ids(self.project.members.list()), [user.id])
        self.assertEqual(set(ids(self.project.members_all.list())), {1, user.id, other.id})
        self.assertEqual(self.project.members_all.get(other.id).access_level, 20)
        again = {"user_id": user.id, "access_level": 30}
        self.refuses(GitlabCreateError, 409, "Member already exists", lambda: self.project.members.create(again))
        member.delete()
        self.refuses(GitlabGetError, 404, "404 Not found", lambda: self.project.members.get(user.id))

    def test_bots(self):
        for holder in (self.project, self.group):
            token = holder.access_tokens.create({"name": "ci", "scopes": ["api"], "access_level": 30})
            self.assertEqual(holder.members.get(token.user_id).access_level, 30)
            self.assertEqual(ids(holder.access_tokens.list()), [token.id])
            bot = gitlab.Gitlab(URL, private_token=token.token)
            bot.auth()
            self.assertEqual((bot.user.id, bot.user.bot), (token.user_id, True))
            token.delete()
            self.refuses(GitlabGetError, 404, "404 Not found", lambda: holder.members.get(token.user_id))

    def test_seats_of_a_group(self):
        user = new_user()
        self.project.members.create({"user_id": user.id, "access_level": 30})
        seat = self.group.billable_members.list(search=user.username)[0]
        self.assertEqual(seat.memberships.list()[0].access_level, {"string_value": "Developer", "integer_value": 30})
        seat.delete()
        self.assertEqual(self.project.members.list(), [])


class Projects(Case):
    def test_edit(self):
        changes = {"description": "all of it", "monitor_access_level": "private", "merge_method": "ff", "topics": ["a", "b"], "build_timeout": 7200,
                   "wiki_access_level": "disabled", "ci_config_path": "ci.yml", "approvals_before_merge": 2}
        for name, value in changes.items():
            setattr(self.project, name, value)
        self.project.save()
        self.assertEqual({name: getattr(self.again(), name) for name in changes}, changes)
        self.assertFalse(self.again().wiki_enabled)
        policy = ROOT.projects.update(self.project.id, {"container_expiration_policy_attributes": {"keep_n": 5}})
        self.assertEqual(policy["container_expiration_policy"]["keep_n"], 5)
        wrong = {"merge_method": "sideways"}
        self.refuses(GitlabUpdateError, 400, "does not have a valid value", lambda: ROOT.projects.update(self.project.id, wrong))

    def test_files(self):
        picture = io.BytesIO(b"\x89PNG\r\n\x1a\n")
        picture.name = "logo.png"
        self.project.avatar = picture
        self.project.save()
        self.assertTrue(self.again().avatar_url)
        self.project.avatar = ""
        self.project.save()
        self.assertIsNone(self.again().avatar_url)
        self.assertEqual(self.project.upload("note.txt", filedata="text")["alt"], "note.txt")
        self.project.files.create({"file_path": "a/b", "branch": "trunk", "content": "x", "commit_message": "m"})
        self.assertEqual((self.again().default_branch, self.again().empty_repo), ("trunk", False))
        self.assertEqual([branch.name for branch in self.project.branches.list()], ["trunk"])
        to_nowhere = {"default_branch": "nowhere"}
        self.refuses(GitlabUpdateError, 400, "Could not change HEAD", lambda: ROOT.projects.update(self.project.id, to_nowhere))

    def test_actions(self):
        self.project.star()
        self.assertEqual((self.again().star_count, ids(ROOT.projects.list(starred=True))), (1, [self.project.id]))
        self.project.unstar()
        self.project.archive()
        self.assertTrue(self.again().archived)
        self.project.description = "changed while archived"
        self.project.save()
        self.assertEqual(self.again().description, "changed while archived")
        self.project.unarchive()
        self.project.housekeeping()
        target = new_group()
        fork = self.project.forks.create({"namespace_path": target.full_path, "name": "Copy", "path": "copy"})
        self.assertEqual(fork.forked_from_project["id"], self.project.id)
        self.assertEqual(ids(self.project.forks.list()), [fork.id])
        fork = ROOT.projects.get(fork.id)
        fork.delete_fork_relation()
        fork.create_fork_relation(self.project.id)
        self.project.transfer(target.id)
        self.assertEqual(self.again().path_with_namespace, f"{target.full_path}/shop")
        self.project.delete()
        self.refuses(GitlabGetError, 404, "404 Project Not Found", self.again)

    def test_lists(self):
        wanted = [ROOT.projects.create({"name": f"p{n}", "namespace_id": self.group.id, "topics": [self.group.path]}).id for n in range(5)]
        found = {"topic": self.group.path}
        self.assertEqual(ids(ROOT.projects.list(iterator=True, per_page=2, **found)), wanted[::-1])
        self.assertEqual(ids(ROOT.projects.list(get_all=True, per_page=3, order_by="name", sort="asc", **found)), wanted)
        keyset = {"iterator": True, "pagination": "keyset", "order_by": "id", "sort": "asc", "per_page": 2}
        self.assertEqual(ids(ROOT.projects.list(**keyset, **found)), wanted)
        page = ROOT.projects.list(iterator=True, per_page=2, **found)
        self.assertEqual((page.total, page.total_pages, page.next_page, page.prev_page), (5, 3, 2, None))
        self.assertEqual(ROOT.http_head("/projects", query_data=found)["X-Total"], "5")
        self.assertNotIn("permissions", gitlab.Gitlab(URL).projects.list()[0].attributes)


class Settings(Case):
    def test_variables(self):
        variables = ROOT.projects.get(self.group.path + "/shop", lazy=True).variables
        variables.create({"key": "K", "value": "one", "environment_scope": "prod", "protected": True, "raw": True})
        variables.create({"key": "K", "value": "two"})
        self.refuses(GitlabGetError, 409, "multiple variables", lambda: variables.get("K"))
        self.refuses(GitlabCreateError, 400, "has already been taken", lambda: variables.create({"key": "K", "value": "x"}))
        prod = {"environment_scope": "prod"}
        variables.update("K", {"value": "three", "filter": prod})
        self.assertEqual([v.value for v in variables.list()], ["three", "two"])
        self.assertTrue(variables.get("K", filter=prod).protected)
        variables.delete("K", filter=prod)
        rest = variables.get("K")
        rest.value = "four"
        rest.save()
        self.assertEqual((variables.get("K").value, variables.get("K").environment_scope), ("four", "*"))

    def test_variables_of_a_group(self):
        self.group.variables.create({"key": "K", "value": "one"})
        self.group.variables.update("K", {"value": "two"})
        self.assertEqual([v.value for v in self.group.variables.list()], ["two"])
        self.assertEqual(self.project.variables.list(), [])

    def test_hooks(self):
        hook = self.project.hooks.create({"url": "https://ci.example/x", "push_events": False, "token": "hidden"})
        self.assertNotIn("token", hook.attributes)
        hook.issues_events = True
        hook.save()
        stored = self.project.hooks.get(hook.id)
        self.assertEqual((stored.push_events, stored.issues_events), (False, True))
        self.refuses(GitlabCreateError, 422, "Invalid url given", lambda: self.project.hooks.create({"url": "nowhere"}))
        hook.delete()
        self.assertEqual(self.project.hooks.list(), [])

    def test_push_rules(self):
        self.project.pushrules.create({"deny_delete_tag": True, "max_file_size": 5})
        rule = self.project.pushrules.get()
        rule.commit_message_regex = "^fix"
        rule.save()
        rule = self.project.pushrules.get()
        self.assertEqual((rule.deny_delete_tag, rule.max_file_size, rule.commit_message_regex), (True, 5, "^fix"))
        self.refuses(GitlabCreateError, 422, "exists", lambda: self.project.pushrules.create({"member_check": True}))
        rule.delete()
        self.assertIsNone(ROOT.http_get(f"/projects/{self.project.id}/push_rule"))

    def test_repository(self):
        self.project.files.create({"file_path": "dir/a.txt", "branch": "main", "content": "one", "commit_message": "first"})
        file = self.project.files.get("dir/a.txt", ref="main")
        self.assertEqual((file.decode(), file.size), (b"one", 3))
        file.content = "two"
        file.save(branch="main", commit_message="second")
        self.assertEqual(self.project.files.get("dir/a.txt", ref="HEAD").decode(), b"two")
        self.assertEqual([entry["path"] for entry in self.project.repository_tree(recursive=True, get_all=True)], ["dir", "dir/a.txt"])
        self.project.branches.create({"branch": "next", "ref": "main"})
        self.refuses(GitlabCreateError, 400, "already exists", lambda: self.project.branches.create({"branch": "next", "ref": "main"}))
        self.assertEqual(self.project.branches.get("next").commit["title"], "second")
        tag = self.project.tags.create({"tag_name": "v1", "ref": "next"})
        self.assertEqual([one.name for one in self.project.tags.list()], ["v1"])
        tag.delete()
        self.project.branches.delete("next")
        self.assertEqual([one.name for one in self.project.branches.list()], ["main"])
        self.project.files.delete(file_path="dir/a.txt", branch="main", commit_message="third")
        self.refuses(GitlabGetError, 404, "File Not Found", lambda: self.project.files.get("dir/a.txt", ref="main"))
        self.assertEqual(self.project.protectedbranches.get("main").name, "main")


if __name__ == "__main__":
    unittest.main()
