// What a user of go-gitlab does, against the embedded service; every step asserts its effect. This client decodes
// each answer into typed structs, so a number in quotes, a date in another form or an object for a list ends the run.
//
// The address and the administrator's token come in UNDRIFT_CLIENT_URL and UNDRIFT_CLIENT_TOKEN.
package clients

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-retryablehttp"
	"github.com/xanzy/go-gitlab"
)

var (
	root   = client(os.Getenv("UNDRIFT_CLIENT_TOKEN"))
	public = gitlab.Visibility(gitlab.PublicVisibility)
	text   = gitlab.String
	yes    = gitlab.Bool(true)
	no     = gitlab.Bool(false)
	number = gitlab.Int
	level  = gitlab.AccessLevel
	count  int
)

type unlimited struct{}

func (unlimited) Wait(context.Context) error { return nil }

func client(token string) *gitlab.Client {
	address := gitlab.WithBaseURL(os.Getenv("UNDRIFT_CLIENT_URL"))
	client, err := gitlab.NewClient(token, address, gitlab.WithCustomLimiter(unlimited{}), gitlab.WithoutRetries())
	done(nil, err)
	return client
}

// done ends the run where a call failed.
func done(_ *gitlab.Response, err error) {
	if err != nil {
		panic(err)
	}
}

// must is done for a call that answers something.
func must[T any](value T, _ *gitlab.Response, err error) T {
	done(nil, err)
	return value
}

// failed leaves nothing of a call but its error.
func failed[T any](_ T, _ *gitlab.Response, err error) error { return err }

func equal(t *testing.T, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %#v, not %#v", got, want)
	}
}

func refuses(t *testing.T, status int, text string, err error) {
	t.Helper()
	var refusal *gitlab.ErrorResponse
	if !errors.As(err, &refusal) || refusal.Response.StatusCode != status || !strings.Contains(refusal.Message, text) {
		t.Errorf("%v, not %d %s", err, status, text)
	}
}

func name(of string) string {
	count++
	return fmt.Sprintf("go-%s%d", of, count)
}

func newUser() *gitlab.User {
	name := name("user")
	return must(root.Users.CreateUser(&gitlab.CreateUserOptions{
		Username: &name, Name: &name, Email: text(name + "@mail.example"), Password: text("long enough"),
	}))
}

func newGroup() *gitlab.Group {
	name := name("group")
	return must(root.Groups.CreateGroup(&gitlab.CreateGroupOptions{Name: &name, Path: &name, Visibility: public}))
}

// fresh makes a group with a project in it.
func fresh() (*gitlab.Group, *gitlab.Project) {
	group := newGroup()
	options := gitlab.CreateProjectOptions{Name: text("Shop"), NamespaceID: &group.ID, Visibility: public}
	return group, must(root.Projects.CreateProject(&options))
}

func projectIDs(projects []*gitlab.Project) (ids []int) {
	for _, project := range projects {
		ids = append(ids, project.ID)
	}
	return ids
}

func TestUsers(t *testing.T) {
	equal(t, must(root.Users.CurrentUser()).Username, "root")
	equal(t, must(root.License.GetLicense()).Expired, false)
	refuses(t, 401, "401 Unauthorized", failed(client("wrong").Users.CurrentUser()))
	refuses(t, 401, "401 Unauthorized", failed(client("").Users.CurrentUser()))
	user := newUser()
	equal(t, must(root.Users.ListUsers(&gitlab.ListUsersOptions{Username: &user.Username}))[0].ID, user.ID)
	options := gitlab.CreateUserOptions{Username: text("other"), Name: text("x"), Email: &user.Email, Password: text("long enough")}
	refuses(t, 409, "Email has already been taken", failed(root.Users.CreateUser(&options)))
	done(nil, root.Users.BlockUser(user.ID))
	equal(t, must(root.Users.GetUser(user.ID, gitlab.GetUsersOptions{})).State, "blocked")
	done(nil, root.Users.UnblockUser(user.ID))
	expires := gitlab.ISOTime(time.Now().AddDate(0, 0, 9))
	token := must(root.Users.CreatePersonalAccessToken(user.ID, &gitlab.CreatePersonalAccessTokenOptions{
		Name: text("test"), Scopes: &[]string{"api"}, ExpiresAt: &expires,
	}))
	equal(t, must(client(token.Token).Users.CurrentUser()).ID, user.ID)
	equal(t, len(must(root.Users.GetUserMemberships(user.ID, nil))), 0)
	done(root.Users.DeleteUser(user.ID))
	refuses(t, 404, "404 User Not Found", failed(root.Users.GetUser(user.ID, gitlab.GetUsersOptions{})))
}

func TestGroups(t *testing.T) {
	group, project := fresh()
	other := newGroup()
	options := gitlab.CreateGroupOptions{Name: text("Below"), Path: text("below"), ParentID: &group.ID, Visibility: public}
	below := must(root.Groups.CreateGroup(&options))
	equal(t, must(root.Groups.GetGroup(group.FullPath+"/below", nil)).ParentID, group.ID)
	equal(t, must(root.Groups.ListSubGroups(group.ID, nil))[0].ID, below.ID)
	equal(t, must(root.Namespaces.GetNamespace(below.FullPath)).Kind, "group")
	must(root.Groups.TransferGroup(below.ID, project.ID))
	deep := gitlab.ListGroupProjectsOptions{IncludeSubGroups: yes}
	equal(t, projectIDs(must(root.Groups.ListGroupProjects(group.ID, &deep))), []int{project.ID})
	invitation := gitlab.ShareGroupWithGroupOptions{GroupID: &other.ID, GroupAccess: level(gitlab.ReporterPermissions)}
	equal(t, must(root.Groups.ShareGroupWithGroup(group.ID, &invitation)).SharedWithGroups[0].GroupID, other.ID)
	done(root.Groups.UnshareGroupFromGroup(group.ID, other.ID))
	done(root.Groups.DeleteGroup(group.ID))
	refuses(t, 404, "404 Group Not Found", failed(root.Groups.GetGroup(below.ID, nil)))
}

func TestProjects(t *testing.T) {
	group := newGroup()
	policy := gitlab.ContainerExpirationPolicyAttributes{KeepN: number(5), Enabled: yes}
	project := must(root.Projects.CreateProject(&gitlab.CreateProjectOptions{
		Name: text("Shop"), NamespaceID: &group.ID, Visibility: public, Topics: &[]string{"b", "a"}, BuildTimeout: number(1800),
		ContainerExpirationPolicyAttributes: &policy, MergeMethod: gitlab.MergeMethod(gitlab.FastForwardMerge),
		InitializeWithReadme: yes, DefaultBranch: text("trunk"), LFSEnabled: no,
	}))
	equal(t, []any{project.Topics, project.BuildTimeout, project.MergeMethod, project.DefaultBranch, project.LFSEnabled, project.EmptyRepo},
		[]any{[]string{"a", "b"}, 1800, gitlab.FastForwardMerge, "trunk", false, false})
	equal(t, project.ContainerExpirationPolicy.KeepN, 5)
	equal(t, project.ContainerExpirationPolicy.NextRunAt.After(*project.CreatedAt), true)
	edited := must(root.Projects.EditProject(project.PathWithNamespace, &gitlab.EditProjectOptions{
		CIDefaultGitDepth: number(0), WikiEnabled: no, IssuesAccessLevel: gitlab.AccessControl(gitlab.PrivateAccessControl),
	}))
	equal(t, []any{edited.CIDefaultGitDepth, edited.WikiAccessLevel, edited.IssuesAccessLevel, edited.IssuesEnabled},
		[]any{0, gitlab.DisabledAccessControl, gitlab.PrivateAccessControl, true})
	pictured := must(root.Projects.UploadAvatar(project.ID, strings.NewReader("x"), "logo.png"))
	equal(t, strings.HasSuffix(pictured.AvatarURL, "/logo.png"), true)
	refuses(t, 400, "{name: [has already been taken]}",
		failed(root.Projects.CreateProject(&gitlab.CreateProjectOptions{Name: text("Shop"), NamespaceID: &group.ID})))
	refuses(t, 400, "at least one parameter must be provided", failed(root.Projects.EditProject(project.ID, &gitlab.EditProjectOptions{})))
	user := newUser()
	own := must(root.Projects.CreateProjectForUser(user.ID, &gitlab.CreateProjectForUserOptions{Name: text("Own")}))
	equal(t, []any{own.Owner.ID, own.Namespace.Kind}, []any{user.ID, "user"})
	equal(t, projectIDs(must(root.Projects.ListUserProjects(user.Username, nil))), []int{own.ID})
	done(root.Projects.DeleteProject(project.ID))
	refuses(t, 404, "404 Project Not Found", failed(root.Projects.GetProject(project.ID, nil)))
}

// The decoder takes a missing key for a zero, so the keys are compared here.
func TestNoFieldIsMissing(t *testing.T) {
	_, project := fresh()
	request, err := root.NewRequest(http.MethodGet, fmt.Sprintf("projects/%d", project.ID), nil, nil)
	done(nil, err)
	request.URL.RawQuery = "statistics=true&license=true&with_custom_attributes=true"
	var answer map[string]any
	done(root.Do(request, &answer))
	// What the reference does not list, and what only some projects have.
	mayBeMissing := map[string]bool{
		"build_coverage_regex": true, "build_git_strategy": true, "emails_disabled": true, "merge_pipelines_enabled": true,
		"merge_trains_enabled": true, "operations_access_level": true, "public": true, "public_builds": true,
		"forked_from_project": true, "owner": true,
		"mirror_user_id": true, "mirror_trigger_builds": true, "only_mirror_protected_branches": true,
		"mirror_overwrites_diverged_branches": true,
	}
	fields := reflect.TypeOf(*project)
	for index := 0; index < fields.NumField(); index++ {
		key, _, _ := strings.Cut(fields.Field(index).Tag.Get("json"), ",")
		if _, found := answer[key]; !found && !mayBeMissing[key] {
			t.Errorf("%s is missing", key)
		}
	}
}

func TestActions(t *testing.T) {
	group, project := fresh()
	other := newGroup()
	equal(t, must(root.Projects.StarProject(project.ID)).StarCount, 1)
	equal(t, projectIDs(must(root.Projects.ListUserStarredProjects("root", nil))), []int{project.ID})
	equal(t, must(root.Projects.UnstarProject(project.ID)).StarCount, 0)
	equal(t, must(root.Projects.ArchiveProject(project.ID)).Archived, true)
	equal(t, must(root.Projects.UnarchiveProject(project.ID)).Archived, false)
	file := must(root.Projects.UploadFile(project.ID, strings.NewReader("x"), "shot.png"))
	equal(t, []any{file.Alt, file.Markdown}, []any{"shot", "![shot](" + file.URL + ")"})
	equal(t, len(*must(root.Projects.GetProjectLanguages(project.ID))), 0)
	equal(t, must(root.Projects.ListProjectsUsers(project.ID, nil))[0].Username, "root")
	equal(t, must(root.Projects.ListProjectsGroups(project.ID, nil))[0].ID, group.ID)

	options := gitlab.ForkProjectOptions{NamespaceID: &other.ID, Name: text("Copy"), Path: text("copy")}
	fork := must(root.Projects.ForkProject(project.ID, &options))
	equal(t, []any{fork.ImportStatus, fork.ForkedFromProject.ID}, []any{"scheduled", project.ID})
	refuses(t, 409, "has already been taken", failed(root.Projects.ForkProject(project.ID, &options)))
	equal(t, projectIDs(must(root.Projects.ListProjectForks(project.ID, nil))), []int{fork.ID})
	refuses(t, 409, "Project already forked", failed(root.Projects.CreateProjectForkRelation(fork.ID, project.ID)))
	done(root.Projects.DeleteProjectForkRelation(fork.ID))
	must(root.Projects.CreateProjectForkRelation(fork.ID, project.ID))
	moved := must(root.Projects.TransferProject(fork.ID, &gitlab.TransferProjectOptions{Namespace: group.ID}))
	equal(t, moved.Namespace.ID, group.ID)

	invitation := gitlab.ShareWithGroupOptions{GroupID: &other.ID, GroupAccess: level(gitlab.DeveloperPermissions)}
	done(root.Projects.ShareProjectWithGroup(project.ID, &invitation))
	equal(t, must(root.Projects.GetProject(project.ID, nil)).SharedWithGroups[0].GroupAccessLevel, 30)
	done(root.Projects.DeleteSharedProjectFromGroup(project.ID, other.ID))
	_, err := root.Projects.DeleteSharedProjectFromGroup(project.ID, other.ID)
	refuses(t, 404, "404 Group Link Not Found", err)
}

func TestLists(t *testing.T) {
	group := newGroup()
	var made []int
	for index := 0; index < 5; index++ {
		options := gitlab.CreateProjectOptions{Name: text(name("listed")), NamespaceID: &group.ID, Topics: &[]string{group.Path}}
		made = append(made, must(root.Projects.CreateProject(&options)).ID)
	}
	options := gitlab.ListProjectsOptions{
		ListOptions: gitlab.ListOptions{PerPage: 2, Page: 1}, Topic: &group.Path, OrderBy: text("id"), Sort: text("asc"),
	}
	var paged []int
	for options.Page != 0 {
		page, response, err := root.Projects.ListProjects(&options)
		done(response, err)
		equal(t, []int{response.TotalItems, response.TotalPages, response.CurrentPage}, []int{5, 3, options.Page})
		paged = append(paged, projectIDs(page)...)
		options.Page = response.NextPage
	}
	equal(t, paged, made)

	var keyed []int
	next := "pagination=keyset&per_page=2&order_by=id&sort=asc&topic=" + group.Path
	for next != "" {
		page, response, err := root.Projects.ListProjects(nil, func(request *retryablehttp.Request) error {
			request.URL.RawQuery = next
			return nil
		})
		done(response, err)
		keyed = append(keyed, projectIDs(page)...)
		_, link, _ := strings.Cut(response.Header.Get("Link"), "?")
		next, _, _ = strings.Cut(link, `>; rel="next"`)
	}
	equal(t, keyed, made)
	refuses(t, 400, "order_by does not have a valid value",
		failed(root.Projects.ListProjects(&gitlab.ListProjectsOptions{OrderBy: text("size")})))
}

func TestMembers(t *testing.T) {
	group, project := fresh()
	user := newUser()
	member := must(root.GroupMembers.AddGroupMember(group.ID, &gitlab.AddGroupMemberOptions{
		UserID: &user.ID, AccessLevel: level(gitlab.ReporterPermissions), ExpiresAt: text("2999-01-31"),
	}))
	equal(t, []any{member.AccessLevel, member.ExpiresAt.String()}, []any{gitlab.ReporterPermissions, "2999-01-31"})
	edit := gitlab.EditGroupMemberOptions{AccessLevel: level(gitlab.DeveloperPermissions), ExpiresAt: text("")}
	equal(t, must(root.GroupMembers.EditGroupMember(group.ID, user.ID, &edit)).ExpiresAt == nil, true)
	query := gitlab.ListGroupMembersOptions{Query: &user.Username}
	equal(t, must(root.Groups.ListGroupMembers(group.ID, &query))[0].ID, user.ID)
	equal(t, must(root.Groups.ListAllGroupMembers(group.ID, &query))[0].AvatarURL != "", true)
	equal(t, must(root.GroupMembers.GetGroupMember(group.ID, user.ID)).AccessLevel, gitlab.DeveloperPermissions)
	refuses(t, 404, "404 Not found", failed(root.ProjectMembers.GetProjectMember(project.ID, user.ID)))
	inherited := must(root.ProjectMembers.GetInheritedProjectMember(project.ID, user.ID))
	equal(t, inherited.AccessLevel, gitlab.DeveloperPermissions)
	add := func(access gitlab.AccessLevelValue) (*gitlab.ProjectMember, *gitlab.Response, error) {
		return root.ProjectMembers.AddProjectMember(project.ID, &gitlab.AddProjectMemberOptions{UserID: user.ID, AccessLevel: &access})
	}
	refuses(t, 400, "should be greater than or equal to Developer", failed(add(gitlab.GuestPermissions)))
	must(add(gitlab.MaintainerPermissions))
	refuses(t, 409, "Member already exists", failed(add(gitlab.MaintainerPermissions)))
	raise := gitlab.EditProjectMemberOptions{AccessLevel: level(gitlab.OwnerPermissions)}
	must(root.ProjectMembers.EditProjectMember(project.ID, user.ID, &raise))
	equal(t, len(must(root.ProjectMembers.ListProjectMembers(project.ID, nil))), 1)
	listed := gitlab.ListProjectMembersOptions{UserIDs: &[]int{user.ID}}
	equal(t, must(root.ProjectMembers.ListAllProjectMembers(project.ID, &listed))[0].AccessLevel, gitlab.OwnerPermissions)
	equal(t, must(root.Groups.ListBillableGroupMembers(group.ID, nil))[0].ID > 0, true)
	done(root.ProjectMembers.DeleteProjectMember(project.ID, user.ID))
	done(root.GroupMembers.RemoveGroupMember(group.ID, user.ID, nil))
	must(add(gitlab.GuestPermissions))
	done(root.Groups.RemoveBillableGroupMember(group.ID, user.ID))
	equal(t, len(must(root.ProjectMembers.ListAllProjectMembers(project.ID, &listed))), 0)
}

func TestVariables(t *testing.T) {
	_, project := fresh()
	variables := root.ProjectVariables
	create := func(value, scope string) (*gitlab.ProjectVariable, *gitlab.Response, error) {
		return variables.CreateVariable(project.ID, &gitlab.CreateProjectVariableOptions{
			Key: text("K"), Value: &value, EnvironmentScope: &scope, VariableType: gitlab.VariableType(gitlab.FileVariableType), Protected: yes,
		})
	}
	variable := must(create("one", "prod/*"))
	equal(t, *variable, gitlab.ProjectVariable{Key: "K", Value: "one", VariableType: "file", Protected: true, EnvironmentScope: "prod/*"})
	must(create("two", "*"))
	refuses(t, 400, "{key: [(K) has already been taken]}", failed(create("two", "*")))
	refuses(t, 409, "There are multiple variables", failed(variables.GetVariable(project.ID, "K", nil)))
	filter := &gitlab.VariableFilter{EnvironmentScope: "prod/*"}
	must(variables.UpdateVariable(project.ID, "K", &gitlab.UpdateProjectVariableOptions{Value: text("three"), Filter: filter}))
	equal(t, must(variables.GetVariable(project.ID, "K", &gitlab.GetProjectVariableOptions{Filter: filter})).Value, "three")
	done(variables.RemoveVariable(project.ID, "K", &gitlab.RemoveProjectVariableOptions{Filter: filter}))
	equal(t, must(variables.ListVariables(project.ID, nil))[0].Value, "two")
}

func TestHooks(t *testing.T) {
	_, project := fresh()
	hook := must(root.Projects.AddProjectHook(project.ID, &gitlab.AddProjectHookOptions{
		URL: text("https://ci.example/x"), Token: text("hidden"), PushEvents: no, JobEvents: yes, PushEventsBranchFilter: text("main"),
	}))
	equal(t, []any{hook.ProjectID, hook.PushEvents, hook.JobEvents, hook.EnableSSLVerification, hook.PushEventsBranchFilter},
		[]any{project.ID, false, true, true, "main"})
	must(root.Projects.EditProjectHook(project.ID, hook.ID, &gitlab.EditProjectHookOptions{URL: text("https://ci.example/y")}))
	equal(t, must(root.Projects.ListProjectHooks(project.ID, nil))[0].URL, "https://ci.example/y")
	refuses(t, 422, "Invalid url given", failed(root.Projects.AddProjectHook(project.ID, &gitlab.AddProjectHookOptions{URL: text("ftp://x")})))
	done(root.Projects.DeleteProjectHook(project.ID, hook.ID))
	refuses(t, 404, "404 Not found", failed(root.Projects.GetProjectHook(project.ID, hook.ID)))
}

func TestPushRules(t *testing.T) {
	_, project := fresh()
	equal(t, *must(root.Projects.GetProjectPushRules(project.ID)), gitlab.ProjectPushRules{})
	options := gitlab.AddProjectPushRuleOptions{CommitMessageRegex: text("^fix"), MaxFileSize: number(5), DenyDeleteTag: yes}
	must(root.Projects.AddProjectPushRule(project.ID, &options))
	refuses(t, 422, "Project push rule exists", failed(root.Projects.AddProjectPushRule(project.ID, &options)))
	edit := gitlab.EditProjectPushRuleOptions{MaxFileSize: number(0)}
	rule := must(root.Projects.EditProjectPushRule(project.ID, &edit))
	equal(t, []any{rule.CommitMessageRegex, rule.MaxFileSize, rule.DenyDeleteTag, rule.MemberCheck}, []any{"^fix", 0, true, false})
	done(root.Projects.DeleteProjectPushRule(project.ID))
	refuses(t, 404, "404 Push Rule Not Found", failed(root.Projects.EditProjectPushRule(project.ID, &edit)))
}

func TestRepository(t *testing.T) {
	_, project := fresh()
	encoded := gitlab.CreateFileOptions{Branch: text("main"), Content: text("aGk="), Encoding: text("base64"), CommitMessage: text("first")}
	equal(t, *must(root.RepositoryFiles.CreateFile(project.ID, "dir/a.txt", &encoded)), gitlab.FileInfo{FilePath: "dir/a.txt", Branch: "main"})
	refuses(t, 400, "A file with this name already exists", failed(root.RepositoryFiles.CreateFile(project.ID, "dir/a.txt", &encoded)))
	file := must(root.RepositoryFiles.GetFile(project.ID, "dir/a.txt", &gitlab.GetFileOptions{Ref: text("main")}))
	equal(t, []any{file.Content, file.Size, file.Encoding, file.CommitID == file.LastCommitID}, []any{"aGk=", 2, "base64", true})
	told := must(root.RepositoryFiles.GetFileMetaData(project.ID, "dir/a.txt", &gitlab.GetFileMetaDataOptions{Ref: text("main")}))
	equal(t, []any{told.BlobID, told.Size, told.Ref}, []any{file.BlobID, 2, "main"})
	edit := gitlab.UpdateFileOptions{Branch: text("main"), Content: text("new"), CommitMessage: text("second"), LastCommitID: &file.LastCommitID}
	must(root.RepositoryFiles.UpdateFile(project.ID, "dir/a.txt", &edit))
	refuses(t, 400, "has changed since", failed(root.RepositoryFiles.UpdateFile(project.ID, "dir/a.txt", &edit)))
	branch := must(root.Branches.CreateBranch(project.ID, &gitlab.CreateBranchOptions{Branch: text("next"), Ref: text("main")}))
	equal(t, []any{branch.Default, branch.Protected, branch.CanPush, branch.Commit.Title}, []any{false, false, true, "second"})
	equal(t, branch.Commit.CommittedDate.IsZero(), false)
	equal(t, len(must(root.Branches.ListBranches(project.ID, nil))), 2)
	tag := must(root.Tags.CreateTag(project.ID, &gitlab.CreateTagOptions{TagName: text("v1"), Ref: text("next"), Message: text("one")}))
	equal(t, []any{tag.Commit.ID, tag.Message, tag.Target}, []any{branch.Commit.ID, "one", branch.Commit.ID})
	done(root.Tags.DeleteTag(project.ID, "v1"))
	refuses(t, 404, "404 Tag Not Found", failed(root.Tags.GetTag(project.ID, "v1")))
	done(root.Branches.DeleteBranch(project.ID, "next"))
	refuses(t, 404, "404 Branch Not Found", failed(root.Branches.GetBranch(project.ID, "next")))
	done(root.RepositoryFiles.DeleteFile(project.ID, "dir/a.txt", &gitlab.DeleteFileOptions{Branch: text("main"), CommitMessage: text("third")}))
	equal(t, len(must(root.Repositories.ListTree(project.ID, nil))), 0)
	equal(t, must(root.ProjectImportExport.ImportStatus(project.ID)).ImportStatus, "none")
}

func TestAccessRequests(t *testing.T) {
	group, project := fresh()
	user := newUser()
	as := gitlab.WithSudo(user.ID)
	equal(t, must(root.AccessRequests.RequestProjectAccess(project.ID, as)).Username, user.Username)
	equal(t, len(must(root.AccessRequests.ListProjectAccessRequests(project.ID, nil))), 1)
	equal(t, len(must(root.ProjectMembers.ListProjectMembers(project.ID, nil))), 0)
	approve := gitlab.ApproveAccessRequestOptions{AccessLevel: level(gitlab.ReporterPermissions)}
	equal(t, must(root.AccessRequests.ApproveProjectAccessRequest(project.ID, user.ID, &approve)).AccessLevel, gitlab.ReporterPermissions)
	other := newUser()
	must(root.AccessRequests.RequestGroupAccess(group.ID, gitlab.WithSudo(other.ID)))
	done(root.AccessRequests.DenyGroupAccessRequest(group.ID, other.ID))
	equal(t, len(must(root.AccessRequests.ListGroupAccessRequests(group.ID, nil))), 0)
}
