package slider

import (
	"reflect"
	"slices"
	"strings"
)

// The shapes of the three documents, as in Slider's own classes. The loader takes the known keys from them (it warns
// about a key without a field), and the JSON Schemas in doc/schema are made from them, so that both agree. The
// documents are not decoded into them, because the loader needs the places.

// Text is a text; a number, true or false stands for its letters.
type Text string

// Whole is a whole number, also as a text.
type Whole string

// Truth is true or false, also as a text in any letter case.
type Truth string

// List is a text that lists names, with commas between them.
type List string

// Metainfo describes an app package: its components, how they run and what they publish.
type Metainfo struct {
	// Version of the format. 2.1 has packages, commands and docker components, 2.0 osSpecifics.
	SchemaVersion Text `json:"schemaVersion,omitempty" jsonschema:"enum=2.0,enum=2.1"`
	// The application that the package is.
	Application *Application `json:"application,omitempty"`
	// What an add-on package has in place of an application.
	ApplicationPackage *AddonPackage `json:"applicationPackage,omitempty"`
}

// Application is what runs.
type Application struct {
	// Name of the application. One of the frameworks' names chooses that framework.
	Name Text `json:"name,omitempty"`
	// What it is, for people.
	Comment Text `json:"comment,omitempty"`
	// Version of the application itself.
	Version Text `json:"version,omitempty"`
	// Dictionaries that a MASTER may publish; without it all.
	ExportedConfigs List `json:"exportedConfigs,omitempty"`
	// Groups of published values.
	ExportGroups []ExportGroup `json:"exportGroups,omitempty"`
	// Which starts wait for what.
	CommandOrders []CommandOrder `json:"commandOrders,omitempty"`
	// What install_packages installs, relative to package/ (schema 2.1).
	Packages []Package `json:"packages,omitempty"`
	// Packages by operating system; only those for any are installed (schema 2.0).
	OSSpecifics []OSSpecific `json:"osSpecifics,omitempty"`
	// Dictionaries besides global.
	ConfigFiles []ConfigFile `json:"configFiles,omitempty"`
	// The roles of the application.
	Components []Component `json:"components" jsonschema:"minItems=1"`
}

// ExportGroup is a named list of published values.
type ExportGroup struct {
	// Name of the group; it is published in lower case.
	Name Text `json:"name"`
	// What it publishes.
	Exports []Export `json:"exports,omitempty"`
}

// Export is a published value.
type Export struct {
	// Name of the value.
	Name Text `json:"name"`
	// Template of the value: ${COMPONENT_HOST} and ${site.DICTIONARY.KEY} are filled in.
	Value Text `json:"value"`
}

// CommandOrder makes a start wait.
type CommandOrder struct {
	// COMPONENT-START.
	Command Text `json:"command" jsonschema:"pattern=^.+-START$"`
	// What must have happened: COMPONENT-STARTED or COMPONENT-INSTALLED, with commas between them.
	Requires List `json:"requires"`
}

// Package is a part of the package that install_packages copies to the instance's install folder.
type Package struct {
	// Kind of the part; other kinds, such as rpm, are for the operating system and not installed.
	Type Text `json:"type" jsonschema:"example=folder,example=tarball,example=zip"`
	// Path relative to package/.
	Name Text `json:"name"`
}

// OSSpecific lists the packages for one operating system.
type OSSpecific struct {
	// Operating system; any stands for every one.
	OSType Text `json:"osType"`
	// What is installed there.
	Packages []Package `json:"packages,omitempty"`
}

// ConfigFile declares a dictionary of the configuration.
type ConfigFile struct {
	// Format of the file.
	Type Text `json:"type" jsonschema:"enum=xml,enum=hadoop-xml,enum=properties,enum=json,enum=yaml,enum=env,enum=template"`
	// Name of the file.
	FileName Text `json:"fileName"`
	// Dictionary: site.DICTIONARY.KEY in appConfig.
	DictionaryName Text `json:"dictionaryName"`
}

// Component is a role; resources sets how many instances of it run.
type Component struct {
	// Name of the component, unique, in exact letter case.
	Name Text `json:"name" jsonschema:"pattern=^[A-Za-z0-9][A-Za-z0-9._~-]*$,maxLength=63"`
	// Kind of the component: a CLIENT is installed and does not run.
	Category Text `json:"category,omitempty" jsonschema:"enum=MASTER,enum=SLAVE,enum=CLIENT,default=MASTER"`
	// How it runs: DOCKER uses the first of dockerContainers.
	Type Text `json:"type,omitempty" jsonschema:"enum=STANDARD,enum=DOCKER,enum=docker,enum=yarn_docker,default=STANDARD"`
	// Whether its dictionaries are published.
	PublishConfig Truth `json:"publishConfig,omitempty"`
	// Fewest instances.
	MinInstanceCount Whole `json:"minInstanceCount,omitempty"`
	// Most instances; without it there is no limit.
	MaxInstanceCount Whole `json:"maxInstanceCount,omitempty"`
	// Passed on to the scripts; muster.restart decides what restarts.
	AutoStartOnFailure Truth `json:"autoStartOnFailure,omitempty"`
	// Exports, GROUP-NAME, of which the application has one value.
	AppExports List `json:"appExports,omitempty"`
	// Exports, GROUP-NAME, of which each instance has a value.
	CompExports List `json:"compExports,omitempty"`
	// Values that each instance publishes for itself; they may use ${THIS_HOST}.
	ComponentExports []Export `json:"componentExports,omitempty"`
	// Python script for INSTALL, START, STATUS and STOP.
	CommandScript *CommandScript `json:"commandScript,omitempty"`
	// Commands in place of a commandScript (schema 2.1).
	Commands []Command `json:"commands,omitempty"`
	// Dictionaries of this component.
	ConfigFiles []ConfigFile `json:"configFiles,omitempty"`
	// Images; only the first one runs.
	DockerContainers []DockerContainer `json:"dockerContainers,omitempty"`
}

// CommandScript is the script behind a component's commands.
type CommandScript struct {
	// Path relative to package/.
	Script Text `json:"script"`
	// Language of the script.
	ScriptType Text `json:"scriptType,omitempty" jsonschema:"enum=PYTHON,default=PYTHON"`
	// Seconds that a command may take; 0 or missing: 600.
	Timeout Whole `json:"timeout,omitempty"`
}

// Command is one command of a component.
type Command struct {
	// Text for the shell; with type PYTHON a script relative to package/.
	Exec Text `json:"exec"`
	// Which command it is: INSTALL, START, STATUS, STOP or one of your own.
	Name Text `json:"name,omitempty" jsonschema:"default=START"`
	// What runs it.
	Type Text `json:"type,omitempty" jsonschema:"enum=SHELL,enum=PYTHON,default=SHELL"`
}

// DockerContainer is the image of a DOCKER component.
type DockerContainer struct {
	// Name that appConfig uses to replace a field: NAME.FIELD in the component's section.
	Name Text `json:"name"`
	// Reference of the image.
	Image Text `json:"image,omitempty"`
	// Network of the container; muster uses the host's network.
	Network Text `json:"network,omitempty"`
	// Ignored.
	UseNetworkScript Truth `json:"useNetworkScript,omitempty"`
	// Options of docker run; ignored: use muster.* keys.
	Options Text `json:"options,omitempty"`
	// Folders of the host; ignored: the operator's policy lists the mounts.
	Mounts []DockerMount `json:"mounts,omitempty"`
	// Ports; in the host's network both numbers must be the same.
	Ports []DockerPort `json:"ports,omitempty"`
	// Text for the shell in the container: checks whether the application is healthy.
	StatusCommand Text `json:"statusCommand,omitempty"`
	// Text for the shell in the container: START runs it; without it the image's own command.
	StartCommand Text `json:"startCommand,omitempty"`
	// Path of the docker program; ignored.
	CommandPath Text `json:"commandPath,omitempty"`
	// Words after the image in docker run: they run if there is no startCommand.
	AdditionalParam Text `json:"additionalParam,omitempty"`
	// Ignored: muster's containers are never privileged.
	RunPrivilegedContainer Truth `json:"runPrivilegedContainer,omitempty"`
	// Files for the container; ignored: use packages to bring files to the instance.
	InputFiles []DockerInputFile `json:"inputFiles,omitempty"`
	// Dictionaries of the container; they are the component's.
	ConfigFiles []ConfigFile `json:"configFiles,omitempty"`
}

// DockerMount is a folder of the host in a container.
type DockerMount struct {
	// Path in the container.
	ContainerMount Text `json:"containerMount"`
	// Path on the host.
	HostMount Text `json:"hostMount"`
}

// DockerPort is a port of a container.
type DockerPort struct {
	// Port in the container.
	ContainerPort Text `json:"containerPort"`
	// Port on the host.
	HostPort Text `json:"hostPort,omitempty"`
}

// DockerInputFile is a file for a container.
type DockerInputFile struct {
	// Path in the container.
	ContainerPath Text `json:"containerPath,omitempty"`
	// Path of the source file.
	FileLocalPath Text `json:"fileLocalPath,omitempty"`
}

// AddonPackage is a package that adds commands to components of another one.
type AddonPackage struct {
	// Name of the add-on.
	Name Text `json:"name"`
	// What it is, for people.
	Comment Text `json:"comment,omitempty"`
	// Version of the add-on.
	Version Text `json:"version,omitempty"`
	// ADDON-PACKAGE in Slider's own examples; ignored.
	Type Text `json:"type,omitempty"`
	// Ignored.
	MinHadoopVersion Text `json:"minHadoopVersion,omitempty"`
	// What it adds to each component.
	Components []AddonComponent `json:"components" jsonschema:"minItems=1"`
}

// AddonComponent is what an add-on does to a component.
type AddonComponent struct {
	// Component of the application, or ALL.
	Name Text `json:"name"`
	// Script that handles the add-on's commands.
	CommandScript *CommandScript `json:"commandScript,omitempty"`
	// Commands of the add-on.
	Commands []Command `json:"commands,omitempty"`
}

// ConfTree is appConfig or resources: values for all components, and for each one.
type ConfTree struct {
	// Name of the format.
	Schema Text `json:"schema,omitempty"`
	// Free notes.
	Metadata map[string]any `json:"metadata,omitempty"`
	// Values for all components; a component's own value wins.
	Global Section `json:"global,omitempty"`
	// Values of each component.
	Components map[string]Section `json:"components,omitempty"`
	// Secrets: a provider and its names. Supported providers are file:FOLDER/, env:PREFIX and keyring:PREFIX.
	Credentials map[string][]Text `json:"credentials,omitempty"`
}

// Section is one level of appConfig or resources.
type Section map[string]Text

// fields lists the keys of a document's object, by its type.
func fields[T any]() []string { return fieldNames(reflect.TypeFor[T]()) }

func fieldNames(t reflect.Type) []string {
	names := make([]string, t.NumField())
	for i := range names {
		names[i], _, _ = strings.Cut(t.Field(i).Tag.Get("json"), ",")
	}
	return names
}

// inner is the type of the value under a key, for a list that of its items. Nil: a scalar, or a free map.
func inner(t reflect.Type, key string) reflect.Type {
	i := slices.Index(fieldNames(t), key)
	if i < 0 {
		return nil
	}
	in := t.Field(i).Type
	for in.Kind() == reflect.Pointer || in.Kind() == reflect.Slice {
		in = in.Elem()
	}
	if in.Kind() != reflect.Struct {
		return nil
	}
	return in
}
