package slider

import (
	"reflect"
	"slices"
	"strings"
)

// The shapes of the three documents, as Slider's own classes have them. They are what the loader knows (a
// key that a type has no field for is warned of) and what the JSON Schemas in doc/schema are made of, so
// that the two cannot differ. The documents are not decoded into them: the loader needs the places.

// Text is a text; a number, true or false will do, and means its letters.
type Text string

// Whole is a whole number, also as a text.
type Whole string

// Truth is true or false, also as a text in any letter case.
type Truth string

// List is a text that lists names, with commas between them.
type List string

// Metainfo says what an app package is: its components, how they are run and what they publish.
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
	// The same by operating system; only that for any is installed (schema 2.0).
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

// Package is a part of the package that install_packages brings to the instance's install folder.
type Package struct {
	// Kind of the part; others, such as rpm, are for the operating system and not installed.
	Type Text `json:"type" jsonschema:"example=folder,example=tarball,example=zip"`
	// Path relative to package/.
	Name Text `json:"name"`
}

// OSSpecific is the packages for one operating system.
type OSSpecific struct {
	// Operating system; any is every one.
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

// Component is a role; so many instances of it run as resources says.
type Component struct {
	// Name of the component, unique, in exact letter case.
	Name Text `json:"name" jsonschema:"pattern=^[A-Za-z0-9][A-Za-z0-9._~-]*$,maxLength=63"`
	// What it is: a CLIENT is installed and not run.
	Category Text `json:"category,omitempty" jsonschema:"enum=MASTER,enum=SLAVE,enum=CLIENT,default=MASTER"`
	// How it is run: DOCKER takes the first of dockerContainers.
	Type Text `json:"type,omitempty" jsonschema:"enum=STANDARD,enum=DOCKER,enum=docker,enum=yarn_docker,default=STANDARD"`
	// Whether its dictionaries are published.
	PublishConfig Truth `json:"publishConfig,omitempty"`
	// Fewest instances.
	MinInstanceCount Whole `json:"minInstanceCount,omitempty"`
	// Most instances; without it there is no limit.
	MaxInstanceCount Whole `json:"maxInstanceCount,omitempty"`
	// Told to the scripts; muster.restart says what is started again.
	AutoStartOnFailure Truth `json:"autoStartOnFailure,omitempty"`
	// Exports, GROUP-NAME, of which the application has one value.
	AppExports List `json:"appExports,omitempty"`
	// Exports, GROUP-NAME, of which each instance has a value.
	CompExports List `json:"compExports,omitempty"`
	// Values that each instance publishes for itself; they may use ${THIS_HOST}.
	ComponentExports []Export `json:"componentExports,omitempty"`
	// Python script that does INSTALL, START, STATUS and STOP.
	CommandScript *CommandScript `json:"commandScript,omitempty"`
	// Commands in place of a commandScript (schema 2.1).
	Commands []Command `json:"commands,omitempty"`
	// Dictionaries of this component.
	ConfigFiles []ConfigFile `json:"configFiles,omitempty"`
	// Images; only the first one is run.
	DockerContainers []DockerContainer `json:"dockerContainers,omitempty"`
}

// CommandScript is the script behind a component's commands.
type CommandScript struct {
	// Path relative to package/.
	Script Text `json:"script"`
	// Language of the script.
	ScriptType Text `json:"scriptType,omitempty" jsonschema:"enum=PYTHON,default=PYTHON"`
	// Seconds that a command may take; 0 and without it 600.
	Timeout Whole `json:"timeout,omitempty"`
}

// Command is one command of a component.
type Command struct {
	// Text for the shell, or of PYTHON a script relative to package/.
	Exec Text `json:"exec"`
	// Which command it is: INSTALL, START, STATUS, STOP or one of your own.
	Name Text `json:"name,omitempty" jsonschema:"default=START"`
	// What runs it.
	Type Text `json:"type,omitempty" jsonschema:"enum=SHELL,enum=PYTHON,default=SHELL"`
}

// DockerContainer is the image of a DOCKER component.
type DockerContainer struct {
	// Name, by which appConfig replaces a field: NAME.FIELD in the component's section.
	Name Text `json:"name"`
	// Reference of the image.
	Image Text `json:"image,omitempty"`
	// Network of the container; muster runs it in the host's.
	Network Text `json:"network,omitempty"`
	// Not acted upon.
	UseNetworkScript Truth `json:"useNetworkScript,omitempty"`
	// Options of docker run; not acted upon: muster.* keys say the same.
	Options Text `json:"options,omitempty"`
	// Folders of the host; not acted upon: the operator's policy says what is mounted.
	Mounts []DockerMount `json:"mounts,omitempty"`
	// Ports; in the host's network both numbers must be the same.
	Ports []DockerPort `json:"ports,omitempty"`
	// Text for the shell in the container: whether the application is well.
	StatusCommand Text `json:"statusCommand,omitempty"`
	// Text for the shell in the container: what START runs; without it the image's own command.
	StartCommand Text `json:"startCommand,omitempty"`
	// Path of the docker program; not acted upon.
	CommandPath Text `json:"commandPath,omitempty"`
	// What stands after the image in docker run: it is run where there is no startCommand.
	AdditionalParam Text `json:"additionalParam,omitempty"`
	// Not acted upon: no container of muster is privileged.
	RunPrivilegedContainer Truth `json:"runPrivilegedContainer,omitempty"`
	// Files for the container; not acted upon: packages brings files to the instance.
	InputFiles []DockerInputFile `json:"inputFiles,omitempty"`
	// Dictionaries of the container; declare them in the component.
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
	// Path where the file comes from.
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
	// ADDON-PACKAGE in Slider's own examples; not acted upon.
	Type Text `json:"type,omitempty"`
	// Not acted upon.
	MinHadoopVersion Text `json:"minHadoopVersion,omitempty"`
	// What it adds to which component.
	Components []AddonComponent `json:"components" jsonschema:"minItems=1"`
}

// AddonComponent is what an add-on does to a component.
type AddonComponent struct {
	// Component of the application, or ALL.
	Name Text `json:"name"`
	// Script that the add-on's commands are given to.
	CommandScript *CommandScript `json:"commandScript,omitempty"`
	// Commands of the add-on.
	Commands []Command `json:"commands,omitempty"`
}

// ConfTree is appConfig or resources: values for all components and for each.
type ConfTree struct {
	// Name of the format.
	Schema Text `json:"schema,omitempty"`
	// Free notes.
	Metadata map[string]any `json:"metadata,omitempty"`
	// Values for all components; a component's own value wins.
	Global Section `json:"global,omitempty"`
	// Values of each component.
	Components map[string]Section `json:"components,omitempty"`
	// Secrets: a provider and the names that it has. file:FOLDER/, env:PREFIX and keyring:PREFIX are read.
	Credentials map[string][]Text `json:"credentials,omitempty"`
}

// Section is one level of appConfig or resources.
type Section map[string]Text

// fields lists the keys that a document's object may have, as its type says.
func fields[T any]() []string { return fieldNames(reflect.TypeFor[T]()) }

func fieldNames(t reflect.Type) []string {
	names := make([]string, t.NumField())
	for i := range names {
		names[i], _, _ = strings.Cut(t.Field(i).Tag.Get("json"), ",")
	}
	return names
}

// inner finds the type of what stands under a key: of a list that of its items. Nil: a scalar, or a free map.
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
