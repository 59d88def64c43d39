package plan

import (
	"slices"
	"strings"
	"testing"

	"github.com/muster-agent/muster/appdef"
)

func TestInputForm(t *testing.T) {
	for _, tt := range []struct {
		class string
		want  RecordForm
		ok    bool
	}{
		{"", RecordLines, true},
		{"TextInputFormat", RecordLines, true},
		{"org.apache.hadoop.mapred.TextInputFormat", RecordLines, true},
		{"org.apache.hadoop.mapred.TextInputFormat.class", RecordLines, true},
		{"org.apache.hadoop.mapreduce.lib.input.TextInputFormat", RecordLines, true},
		{"org.apache.hadoop.mapred.KeyValueTextInputFormat", RecordValues, true},
		{"org.apache.hadoop.mapred.lib.NLineInputFormat", RecordNLines, true},
		{"org.apache.hadoop.mapreduce.lib.input.NLineInputFormat", RecordNLines, true},
		{"com.example.WholeFileInputFormat", RecordWhole, true},
		{"WholeFileInputFormat", RecordWhole, true},
		{"org.apache.hadoop.mapred.SequenceFileInputFormat", RecordSequence, true},
		{"org.apache.hadoop.mapreduce.lib.input.SequenceFileAsTextInputFormat", RecordSequence, true},

		{"org.apache.hadoop.mapred.NLineInputFormat", "", false}, // it is in lib
		{"com.example.TextInputFormat", "", false},
		{".TextInputFormat", "", false},
		{"org.apache.hadoop.mapred.SequenceFileAsBinaryInputFormat", "", false},
		{"org.apache.hadoop.mapred.TextOutputFormat", "", false},
		{"textinputformat", "", false},
	} {
		if got, ok := InputForm(tt.class); ok != tt.ok || ok && got != tt.want {
			t.Errorf("%q: got %s, %t, want %s, %t", tt.class, got, ok, tt.want, tt.ok)
		}
	}
}

func TestOutputParts(t *testing.T) {
	for class, want := range map[string][2]bool{
		"": {false, true}, "org.apache.hadoop.mapred.TextOutputFormat": {false, true},
		"org.apache.hadoop.mapreduce.lib.output.TextOutputFormat": {false, true},
		"net.qihoo.hbox.common.TextMultiOutputFormat":             {true, true},
		"net.qihoo.xlearning.common.TextMultiOutputFormat":        {true, true},
		"TextMultiOutputFormat.class":                             {true, true},
		"org.apache.hadoop.mapred.SequenceFileOutputFormat":       {false, false},
		"org.apache.hadoop.mapred.TextInputFormat":                {false, false},
	} {
		if parts, ok := OutputParts(class); parts != want[0] || ok != want[1] {
			t.Errorf("%q: got %t, %t, want %v", class, parts, ok, want)
		}
	}
}

// A class that is none of muster's own is one of the user's, if a name of Java's with a package can be meant.
func TestByClass(t *testing.T) {
	for class, want := range map[string][2]bool{
		"": {}, "TextInputFormat": {false, false}, "textinputformat": {}, ".TextInputFormat": {}, "com..Mine": {}, "com.example.Mine;": {}, "com.example.1": {},
		"org.apache.hadoop.mapred.TextInputFormat": {false, true}, "org.apache.hadoop.mapred.TextOutputFormat": {true, false}, "com.example.WholeFileInputFormat": {false, true},
		"com.example.Mine": {true, true}, "com.example.Mine.class": {true, true}, "a.B$C_1": {true, true},
	} {
		if in, out := InputByClass(class), OutputByClass(class); in != want[0] || out != want[1] {
			t.Errorf("%q: got %t, %t, want %v", class, in, out, want)
		}
	}
}

// Those of the user need a Hadoop and a Java of the host's, and readers a place in common.
func TestStreamsByClass(t *testing.T) {
	byClass := func(s *appdef.ComponentSettings) {
		s.Inputs.Strategy, s.Inputs.Format = appdef.StrategyStream, "com.example.Mine"
		s.Outputs.Strategy, s.Outputs.Format = appdef.StrategyStream, "com.example.Yours"
	}
	for _, tt := range []struct {
		hadoop   *HadoopFacts
		starts   bool
		severity string
		shared   string
	}{
		{nil, true, appdef.SeverityError, ""},
		{&HadoopFacts{Conf: "/etc/hadoop/conf"}, true, appdef.SeverityError, ""},
		{nil, false, appdef.SeverityWarning, ""},
		{&HadoopFacts{Conf: "/etc/hadoop/conf", Java: "/j"}, true, "", "hdfs://nn:8020/user/ada/.muster/splits"},
	} {
		req := withStore(request("worker", 0))
		req.Starts, req.Hadoop, req.DefaultFS, req.Given = tt.starts, tt.hadoop, "hdfs://nn:8020", map[string]string{"HADOOP_USER_NAME": "ada"}
		p, problems := Build(reading(byClass), req)
		if tt.severity == appdef.SeverityWarning {
			problems = p.Warnings
		}
		if tt.severity == "" {
			if len(problems) > 0 || p.Inputs.Shared != tt.shared {
				t.Errorf("got %v, shared %q, want %q", problems, p.Inputs.Shared, tt.shared)
			}
			continue
		}
		if len(problems) != 2 || problems[0].Severity != tt.severity || problems[0].Got != `"com.example.Mine"` && problems[0].Got != `"com.example.Yours"` {
			t.Errorf("%+v: got %v, want two of severity %s", tt, problems, tt.severity)
		}
	}
}

// The readers of a class's splits need a filesystem in common; one alone needs none.
func TestSplitsOnThisHost(t *testing.T) {
	for _, tt := range []struct {
		fs      string
		readers int
		got     string
	}{
		{"hdfs://nn:8020", 2, ""},
		{"file:///", 1, ""},
		{"file:///", 2, `"com.example.Mine" with 2 readers and the default filesystem "file:///"`},
		{"file:///data", 2, `"com.example.Mine" with 2 readers and the default filesystem "file:///data"`},
		{"", 2, `"com.example.Mine" with 2 readers and the default filesystem ""`},
	} {
		app := reading(func(s *appdef.ComponentSettings) {
			from := map[string]string{"data": "hdfs://nn:8020/in"}
			s.Inputs = appdef.Inputs{From: from, Strategy: appdef.StrategyStream, Format: "com.example.Mine"}
			s.Outputs = appdef.Outputs{}
		})
		app = with(app, "worker", func(c *appdef.Component) { c.Instances = tt.readers })
		req := request("worker", 0)
		req.Starts, req.Hadoop, req.DefaultFS = true, &HadoopFacts{Conf: "/etc/hadoop/conf", Java: "/j"}, tt.fs
		_, problems := Build(app, req)
		if tt.got == "" && len(problems) > 0 || tt.got != "" && (len(problems) != 1 || problems[0].Got != tt.got) {
			t.Errorf("%+v: got %v", tt, problems)
		}
	}
}

// Properties that no class of the user's reads are told.
func TestUnreadProperties(t *testing.T) {
	for _, tt := range []struct {
		in, out string
		stream  bool
		told    bool
	}{
		{"TextInputFormat", "", true, true},
		{"TextInputFormat", "com.example.Yours", true, false},
		{"com.example.Mine", "", true, false},
		{"com.example.Mine", "", false, true},
	} {
		app := reading(func(s *appdef.ComponentSettings) {
			if tt.stream {
				s.Inputs.Strategy, s.Outputs.Strategy = appdef.StrategyStream, appdef.StrategyStream
			}
			s.Inputs.Format, s.Outputs.Format = tt.in, tt.out
			s.Inputs.Conf = map[string]string{"mapreduce.x": "y", "io.x": "z"}
		})
		p, _ := Build(app, withStore(request("worker", 0)))
		told := slices.ContainsFunc(p.Warnings, func(w appdef.Problem) bool {
			return w.Got == "io.x, mapreduce.x" && strings.HasPrefix(w.Want, "a class of yours")
		})
		if told != tt.told {
			t.Errorf("%+v: got %v", tt, p.Warnings)
		}
	}
}

// A stream is planned with what it needs, and refused by the name of a class that is not read or written here.
func TestStreams(t *testing.T) {
	for _, tt := range []struct {
		change func(*appdef.ComponentSettings)
		got    string // of the problem; empty: none
		stdin  string
		cache  int
	}{
		{func(*appdef.ComponentSettings) {}, "", "", 0},
		{func(s *appdef.ComponentSettings) { s.Inputs.Format = "com.example.Mine" }, "", "", 0}, // of no stream
		{func(s *appdef.ComponentSettings) { s.Inputs.Strategy = appdef.StrategyStream }, "", "stream", 0},
		{func(s *appdef.ComponentSettings) { s.Inputs.Strategy, s.Inputs.Cache = appdef.StrategyStream, true }, "", "stream", 0},
		{func(s *appdef.ComponentSettings) {
			s.Inputs.Strategy, s.Inputs.Cache, s.Inputs.Epochs = appdef.StrategyStream, true, 2
		}, "", "stream", appdef.StreamCacheLimit},
		{func(s *appdef.ComponentSettings) {
			s.Inputs.Strategy, s.Inputs.Format = appdef.StrategyStream, "com.example.Mine"
		}, `"com.example.Mine"`, "", 0},
		{func(s *appdef.ComponentSettings) { s.Outputs.Strategy = appdef.StrategyStream }, "", "", 0},
		{func(s *appdef.ComponentSettings) {
			s.Outputs.Strategy, s.Outputs.Format = appdef.StrategyStream, "org.apache.hadoop.mapred.SequenceFileOutputFormat"
		}, `"org.apache.hadoop.mapred.SequenceFileOutputFormat"`, "", 0},
		{func(s *appdef.ComponentSettings) {
			s.Outputs.Strategy, s.Outputs.To = appdef.StrategyStream, map[string]string{"a": "/a", "b": "/b"}
		}, "2 outputs with the strategy stream", "", 0},
	} {
		req := withStore(request("worker", 0))
		req.Starts = true
		p, problems := Build(reading(tt.change), req)
		if tt.got == "" {
			if len(problems) > 0 || p.Process.Stdin != tt.stdin || p.Inputs.CacheLimit != tt.cache || p.Inputs.Cache != (tt.cache > 0) {
				t.Errorf("got %v, stdin %q, a cache of %d MB, want %q and %d", problems, p.Process.Stdin, p.Inputs.CacheLimit, tt.stdin, tt.cache)
			}
			continue
		}
		if len(problems) != 1 || problems[0].Got != tt.got || problems[0].Severity != appdef.SeverityError {
			t.Errorf("got %v, want that of %s", problems, tt.got)
		}
	}
}
