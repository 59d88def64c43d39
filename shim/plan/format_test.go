package plan

import "testing"

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
