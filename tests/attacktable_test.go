package tests

// attempt is a row of the table: an attack, and what tries it in an engine.
type attempt struct {
	by, what, engine  string
	root, named, user cell // of the agent that is root, root with muster.user, an ordinary user
}

// cell names the test that tries an attack, or why none does.
type cell struct {
	test string // ROOM NAME
	on   string // "v1", "v2", "long" (v2, by make long) in any combination; "any": no cgroup takes part
	why  string // why not, or not on the other version
}

const (
	noMoreRights = "not an attack: an ordinary user's agent has no right that its process lacks"
	v1AsRoot     = "not tried by an ordinary user on cgroup v1: the tests run as root there"
	notOnV2      = "not tried on v2: no cgroup takes part, and the emulated machine is slow"
	asRoot       = "not tried with `muster.user`: root inside may do more, and is refused"
	ofContainers = "not an attack: the engine has no root or images of its own, nothing to leave"
	byIDs        = "not tried in these engines: the modes of the host's files and its checks of ids refuse it"
	byDumping    = "not tried in these engines: the kernel lets nobody look into the guard; root inside can end it, and ends with it"
	byCalls      = "tried there as one of the system calls, above"
	ownRights    = "not tried: without `muster.user` it has a right to use only under `userns: host`"
	namesNone    = "not an attack: the definition names no user"
	userNoUser   = "not an attack: an ordinary user's agent becomes nobody else"
	beforeStart  = "not tried in each engine: the agent refuses it before an engine is asked"
	noEngine     = "not tried with `muster.user`: the process's user takes no part"
	rootsOwn     = "not tried: what is attacked is root's agent alone"
	rootsRun     = "not an attack: root's own folder is in one of root's"
	sameCode     = "not tried as an ordinary user: the same code, and the tests run as root"
	notAsUser    = "not tried as an ordinary user: the same code, with fewer rights"
)

func no(why string) cell              { return cell{why: why} }
func tried(test, on, why string) cell { return cell{test, on, why} }
func anywhere(test string) cell       { return cell{test: test, on: "any"} }
func outside(by, what, test string) attempt { // of an engine
	return attempt{by, what, "any", anywhere(test), no(noEngine), no(sameCode)}
}

func ofRoot(by, what, test string) attempt { // against root's agent, outside of an engine
	return attempt{by, what, "any", anywhere(test), no(noEngine), no(rootsOwn)}
}

func ofAnyUser(by, what, test string) attempt { // against root's agent, whoever the process is
	return attempt{by, what, "any", anywhere(test), anywhere(test), no(noMoreRights)}
}

// inEach is an attack of a process that is tried in each engine by one test.
func inEach(what, test, root, user string) []attempt {
	var all []attempt
	test = "shim/sandbox " + test
	for _, e := range []string{"process", "cgroup", "container"} {
		all = append(all, attempt{"submitter", what, e, tried(test, root, ""), tried(test, root, ""), tried(test, user, v1AsRoot)})
	}
	return all
}

// inContainer is an attack on what containers alone have.
func inContainer(by, what, others, test, root, user string) []attempt {
	test = "shim/sandbox " + test
	return []attempt{
		{by, what, "process, cgroup", no(others), no(others), no(others)},
		{by, what, "container", tried(test, root, ""), no(asRoot), tried(test, user, v1AsRoot)},
	}
}

// ofFiles is an attack by the folders or files that a definition names.
func ofFiles(what, test string, root, named bool, engines ...string) []attempt {
	var all []attempt
	c := tried("tests/confine "+test, "v1", notOnV2)
	for _, e := range engines {
		a := attempt{"submitter", what, e, no(ownRights), no(namesNone), no(noMoreRights)}
		if root {
			a.root = c
		}
		if named {
			a.named = c
		}
		all = append(all, a)
	}
	return all
}

func attempts() []attempt {
	const submitter, pkg, image, neighbour, gang, network = "submitter", "package author", "image author", "neighbour", "other gang", "network"
	each := []string{"process", "cgroup", "container"}
	var all []attempt
	add := func(rows ...attempt) { all = append(all, rows...) }
	add(inEach("keyrings, namespaces, mounts, bpf, perf, modules, devices, privileges", "TestAttackBySystemCalls", "v1 v2", "v2")...)
	add(inEach("lifts its limit of memory by a cgroup of its own", "TestAttackLiftsNoLimit", "v1 v2", "v2")...)
	add(inEach("reads a token on the loopback", "TestAttackReadsNoTokenOnTheLoopback", "v1 v2", "long")...)
	add(inEach("calls of i386 and x32", "TestAttackByCallsOfAnotherArchitecture", "v1 long", "v2")...)
	for _, e := range each {
		root := tried("shim/sandbox TestRootInsideIsASubordinateIDOutside", "v1", notOnV2)
		named := tried("shim/sandbox TestUserOfTheHostIsItself", "v1", notOnV2)
		add(attempt{submitter, "root inside reads root's files, kills the agent", e, root, named, no(noMoreRights)})
	}
	add(inContainer(submitter, "leaves by an open descriptor", ofContainers, "TestAttackNoDescriptorLeadsOut", "v1 v2", "long")...)
	add(inContainer(submitter, "writes to the agent's program", byIDs, "TestAttackOnTheProgram", "v1 long", "v2")...)
	add(inContainer(submitter, "reads, traces or kills the guard", byDumping, "TestAttackOnTheGuard", "v1 long", "v2")...)
	add(attempt{
		submitter, "looks into the guard, as root of the host", "process",
		tried("shim/sandbox TestRootCannotLookIntoTheGuard", "v1", notOnV2), no(asRoot), no(noMoreRights),
	})
	add(inContainer(submitter, "writes to the kernel's files", byIDs, "TestAttackOnKernelFiles", "v1 v2", "v2")...)
	add(inContainer(submitter, "makes or opens a device", byCalls, "TestAttackByDeviceNodes", "v1 v2", "v2")...)
	add(attempt{
		submitter, "makes or opens a device as root with ids of its own", "container",
		tried("shim/sandbox TestAttackByDeviceNodesWithSubordinateIDs", "v1 v2", ""), no(asRoot), no(noMoreRights),
	})
	add(inContainer(image, "folders and links lead mounts elsewhere", ofContainers, "TestAttackByTheImagesFolders", "v1 long", "v2")...)
	add(inContainer(image, "names of programs and accounts", ofContainers, "TestAttackByTheImagesNames", "v1 v2", "long")...)
	add(inContainer(image, "variables steer the loader of a host's program", ofContainers, "TestAttackByTheLoader", "v1 v2", "long")...)
	log := tried("shim/sandbox TestAttackLogIsAnothersFile", "v1", notOnV2)
	add(attempt{submitter, "puts another file in place of a log", "any", log, no(asRoot), no(notAsUser)})
	add(ofFiles("checkpoints into root's folders and out of another user's", "TestAttackCheckpointsOfOthers", false, true, each...)...)
	add(ofFiles("leaves set-user-ID files and devices", "TestAttackSetUserIDFiles", true, true, each...)...)
	add(attempt{
		submitter, "turns a link of its folder while its package is laid out", "any", no(ownRights),
		anywhere("shim/prepare TestAttackStageThroughATurnedLink"), no(noMoreRights),
	}, attempt{
		submitter, "names a path through the agent's own folder or descriptors", "any", no(ownRights),
		anywhere("shim/files TestAttackThroughTheAgentsOwnFolder"), no(noMoreRights),
	})
	for _, e := range each {
		add(attempt{
			submitter, "names a user or group of the host", e, no(namesNone),
			tried("tests/confine TestAttackUsersAndGroups", "v1", notOnV2), no(userNoUser),
		})
	}
	add(ofFiles("names root's files, variables and keys as secrets", "TestAttackSecretsOfRoot", true, true, "process")...)
	add(attempt{submitter, "names root's files, variables and keys as secrets", "cgroup, container", no(beforeStart), no(beforeStart), no(noMoreRights)})
	users := attempt{submitter, "an image's or a definition's user is one of the host", "any", no(namesNone), anywhere("shim/prepare TestAttackUsersOfTheHost"), no(userNoUser)}
	add(users)
	add(ofRoot(submitter, "a login from root's files", "shim/prepare TestAttackLoginFromRootsFiles"),
		ofRoot(submitter, "an image from root's files", "shim/prepare TestAttackLayoutOfRoot"),
		ofRoot(submitter, "file capabilities on what nobody may execute", "shim/files TestAttackCapabilitiesOfNoProgram"),
		ofRoot(submitter, "a limit that tells on the whole host", "shim/prepare TestAttackRaisesLimits"),
		ofRoot(submitter, "a file of another user in place of its own", "shim/files TestAttackMovedFileIsAdopted"),
		ofAnyUser(submitter, "a file of another user to be read as its log", "shim/files TestAttackLogIsRead"),
		ofAnyUser(submitter, "a folder behind a closed one, mounted", "shim/data/stores TestAttackFolderBehindAClosedOne"),
		ofAnyUser(submitter, "set-user-ID bits of others' programs", "shim/prepare TestAttackDisarmsProgramsOfOthers"),
		ofRoot(submitter, "a file of another user in place of a log, for its agent to read", "shim/files TestAttackLogIsRead"),
		ofRoot(submitter, "swaps a file while the agent gives or disarms it", "shim/files TestAttackFileIsSwapped"),
		ofRoot(submitter, "nests folders without end", "shim/files TestAttackDeepFolders"),
		outside(submitter, "nests folders without end in a checkpoint", "shim/checkpoint/format TestAttackDeepCheckpoint"),
		outside(submitter, "stops its guard", "shim/sandbox TestAttackStopsTheGuard"),
		ofRoot(submitter, "a key of root's keyring", "shim/secret TestAttackKeyOfRoot"),
		outside(submitter, "the agent's variables as secrets", "shim/secret TestAttackVariablesOfTheAgent"),
		outside(submitter, "another policy", "shim/policy TestAttackOtherPolicy"),
		outside(submitter, "a file changed behind the list of codeDir", "shim/data/transfer TestAttackOtherFileUnderListedPath"),
		outside(pkg, "`--set` of what runs, under require_signature", "shim/openapp TestAttackSet"),
		outside(pkg, "images by tag, under require_signature", "shim/openapp TestAttackImage"),
		outside(pkg, "unpinned resources, under require_signature", "shim/openapp TestAttackResources"),
		outside(pkg, "all that names what runs, under require_signature", "cmd/muster attack_signature.txtar"),
		outside(pkg, "escapes that steer a terminal", "cmd/muster attack_terminal.txtar"),
		ofRoot(neighbour, "a work folder with links", "tests/confine TestAttackFoldersOfOthers"),
		ofRoot(neighbour, "another folder in place of root's", "shim/files TestAttackFolderIsReplaced"),
		ofRoot(neighbour, "links in a launcher's folders", "shim TestAttackFoldersOfALauncher"),
		ofRoot(neighbour, "a forged record of a container", "shim/sandbox/container TestAttackForgedRecord"),
		ofRoot(neighbour, "a forged record, as a group that may write", "shim/sandbox/container TestAttackFolderOfAGroup"),
		ofRoot(neighbour, "another policy in place of the host's", "shim/policy TestAttackPolicyIsReplaced"),
		outside(neighbour, "another configuration of Hadoop in place of root's", "shim TestAttackHadoopConfIsReplaced"),
		outside(neighbour, "another binary in Nomad's task folder", "shim/render TestAttackNomadTaskFolder"),
		ofRoot(neighbour, "a forged record of an agent", "shim/prepare TestAttackRecordOfAStranger"),
		ofRoot(neighbour, "takes root's locks", "shim/hostlock TestAttackAnotherUserTakesRootsLocks"),
		ofRoot(neighbour, "announces all ports", "shim/ports TestAttackAllPortsAnnounced"),
		ofRoot(neighbour, "announces all GPUs", "shim/gpu TestAttackAllDevicesAnnounced"),
		attempt{
			neighbour, "a state folder in place of a user's", "any", no(rootsRun), no(noEngine),
			anywhere("tests/confine TestAttackStateFolderOfAnother"),
		},
		outside(neighbour, "takes all descriptors of an agent", "shim/status TestAttackTakesAllDescriptors"),
		outside(neighbour, "reads or turns the folder of secrets", "shim/secret TestAttackFolderOfSecrets"),
		outside(neighbour, "reads values in command lines", "shim/mask TestAttackCommandLine"),
		outside(neighbour, "reads values in what is shown", "cmd/muster attack_shown_values.txtar"),
		outside(neighbour, "another package in the store", "cmd/muster attack_store.txtar"),
		outside(neighbour, "writes to the store", "shim/submit TestAttackSharedStore"),
		outside(neighbour, "a store of another user", "shim/submit TestAttackStoreOfAnother"),
		outside(neighbour, "writes to the store on HDFS", "shim/submit TestAttackSharedStoreOnHDFS"),
		outside(neighbour, "swaps the binary in the store", "shim/render TestAttackBinarySwapped"),
		outside(network, "serves another binary", "shim/render TestAttackBinaryWithoutDigest"),
		outside(neighbour, "a browser's page at an instance's REST", "shim/publisher TestAttackByBrowser"),
		outside(neighbour, "folders of the host by the REST", "shim/data/manager TestAttackFolderOfThisHost"),
		ofRoot(gang, "a record names a process to kill", "shim/member TestAttackRecordNamesAProcessOfTheHost"),
		outside(gang, "a record names a port", "shim/ports TestAttackPortOfARecord"),
		outside(gang, "a record names a socket", "shim/status TestAttackSocketOfARecord"),
		outside(gang, "a record names another user's socket", "shim/status TestAttackSocketOfAnotherUser"),
		outside(gang, "a directive's time is a path", "shim/data/manager TestAttackStampOfTheDirective"),
		outside(gang, "a roster that unpacks without end", "registry TestAttackRosterWithoutEnd"),
		outside(gang, "a token of another app", "tests/gang TestAttackWithTheTokenOfAnotherApp"),
		outside(network, "man in the middle of peers", "shim/status TestAttackManInTheMiddle"),
		outside(network, "plain HTTP to a peer", "shim/status TestAttackPlainHTTP"),
		outside(network, "redirects a peer", "shim/status TestAttackRedirect"),
		outside(network, "thousands of idle connections", "shim/status TestAttackIdleConnections"),
		outside(gang, "a state without end", "shim/status TestAttackStateWithoutEnd"),
		outside(network, "10,000 connections to the page", "tests/abuse TestTenThousandConnections"),
		outside(network, "a redirect takes credentials", "shim/store TestAttackRedirectTakesCredentials"))
	return all
}
