package hbox_test

import (
	"strings"
	"testing"

	"github.com/muster-agent/muster/appdef/hbox"
)

// Command lines with a fault, with every word that is said of them. A blank in a word is written as |.
func TestBrokenCommandLines(t *testing.T) {
	for line, want := range map[string]string{
		// What is no option, or has no value.
		"--worker-nun 2 true":                                `command line#: got the unknown option "--worker-nun", want an option of hbox-submit; did you mean --worker-num?`,
		"—ps-nmu 2 true":                                     `command line#: got the unknown option "—ps-nmu", want an option of hbox-submit; did you mean --ps-num?`,
		"--frobnicate true":                                  "command line#: got no command, want it behind the options, or --hbox-cmd\ncommand line#: got the unknown option \"--frobnicate\", want an option of hbox-submit; muster's own stand before HBox's; words of the command that begin with a dash, behind --",
		"--worker-num=2 true":                                `--worker-num#: got "--worker-num=2", want the value as a word of its own; --worker-num VALUE`,
		"--hbox-cmd true --worker-num":                       `--worker-num#: got no value, want a value behind it`,
		"--conf":                                             "--conf#: got no value, want a value behind it\ncommand line#: got no command, want it behind the options, or --hbox-cmd",
		"--app-name --worker-num true":                       `--app-name#: got "--worker-num", want a value; --worker-num is taken for the value of --app-name`,
		"| --app-type tensorflow":                            `command line#: got the word " ", with which the command would begin, want an option or a command; a backslash continues the line only where nothing stands behind it, no blank either`,
		"--app-type caffe":                                   `command line#: got no command, want it behind the options, or --hbox-cmd`,
		"--app-type caffe --hbox-cmd |":                      `--hbox-cmd#: got no command, want it behind the options, or --hbox-cmd`,
		"--hbox-cmd python|a.py python b.py":                 `command line#: got a command behind the options, "python", beside --hbox-cmd, want one of the two; it runs in place of --hbox-cmd; does the last line of the options end in a backslash?`,
		"--app-type vpc --conf muster.image=host sleep 5":    `command line#: got a command with the app type VPC, want no command; it is not run: the job waits for its duration`,
		"--conf hbox.worker.num=2 hbox.worker.cores=1 true":  `command line#: got the word "hbox.worker.cores=1", with which the command would begin, want an option or a command; each NAME=VALUE has a --conf of its own before it`,
		"--conf xlearning.a.b=2 xlearning.worker.num=1 true": "--conf#/hbox.a.b: got the unknown conf \"xlearning.a.b\", want a conf of HBox; it is kept in the app and ignored\ncommand line#: got the word \"xlearning.worker.num=1\", with which the command would begin, want an option or a command; each NAME=VALUE has a --conf of its own before it",
		// Numbers, sizes, yes and no.
		"--worker-num two true":                                             `--worker-num#: got "two", want a whole number, 1 or more`,
		"--worker-num 0 true":                                               `--worker-num#: got "0", want a whole number, 1 or more`,
		"--worker-num 1.5 true":                                             `--worker-num#: got "1.5", want a whole number, 1 or more`,
		"--conf hbox.worker.num=x true":                                     `--conf#/hbox.worker.num: got "x", want a whole number, 1 or more`,
		"--conf xlearning.worker.num=-1 true":                               `--conf#/hbox.worker.num: got "-1", want a whole number, 1 or more`,
		"--worker-memory 2gb true":                                          `--worker-memory#: got "2gb", want megabytes as a whole number, or with G or M behind it: 2048, 2g`,
		"--worker-memory 1.5g true":                                         `--worker-memory#: got "1.5g", want megabytes as a whole number, or with G or M behind it: 2048, 2g`,
		"--worker-memory 0 true":                                            `--worker-memory#: got "0", want megabytes as a whole number, or with G or M behind it: 2048, 2g`,
		"--worker-memory 2147483647g true":                                  `--worker-memory#: got "2147483647g", want megabytes as a whole number, or with G or M behind it: 2048, 2g`,
		"--worker-cores 0 true":                                             `--worker-cores#: got "0", want a whole number, 1 or more`,
		"--worker-gpus -1 true":                                             `--worker-gpus#: got "-1", want a whole number, 0 or more`,
		"--app-type mxnet --ps-num x true":                                  `--ps-num#: got "x", want a whole number, 0 or more`,
		"--board-enable yes true":                                           `--board-enable#: got "yes", want true or false`,
		"--stream-epoch 0 true":                                             `--stream-epoch#: got "0", want a whole number, 1 or more`,
		"--app-type vpc --conf muster.image=host --duration 5w":             `--duration#: got "5w", want a number with s, m, h or d behind it, or 0`,
		"--app-type digits --conf muster.image=host --duration 1h30m":       `--duration#: got "1h30m", want a number with s, m, h or d behind it, or 0`,
		"--conf hbox.container.maxFailures.rate=half true":                  `--conf#/hbox.container.maxFailures.rate: got "half", want a number from 0 to 100, such as 0.5`,
		"--conf hbox.worker.mem.autoscale=-0.5 true":                        `--conf#/hbox.worker.mem.autoscale: got "-0.5", want a number from 0 to 100, such as 0.5`,
		"--conf hbox.app.max.attempts=0 true":                               `--conf#/hbox.app.max.attempts: got "0", want a whole number, 1 or more`,
		"--conf hbox.job.exec.timeout=1h true":                              `--conf#/hbox.job.exec.timeout: got "1h", want a whole number, 0 or more`,
		"--conf hbox.tf.distribution.strategy=1 --app-type tensorflow true": `--conf#/hbox.tf.distribution.strategy: got "1", want true or false`,
		// Data.
		"--input #data true":                               `--input#: got "#data", want PATH#NAME`,
		"--output #model true":                             `--output#: got "#model", want PATH#NAME`,
		"--output /a,/b#model true":                        `--output#: got "/a,/b", want one path`,
		"--input /a#x/y true":                              `--input#: got "x/y", want a local name after muster.input. and something to read`,
		"--input-strategy DOWNLOD --input /a true":         `--input-strategy#: got "DOWNLOD", want DOWNLOAD, PLACEHOLDER, STREAM; did you mean DOWNLOAD?`,
		"--output-strategy FTP --output /a true":           `--output-strategy#: got "FTP", want UPLOAD, STREAM`,
		"--output-index 2 --worker-num 2 --output /a true": `--output-index#: got 2, want an index below the 2 of --worker-num; nobody would leave its outputs`,
		"--output-index -2 --output /a true":               `--output-index#: got "-2", want a whole number, -1 or more`,
		"--board-enable true --board-index 3 true":         `--board-index#: got 3, want the index of a worker, below 1; no board runs`,
		// Confs.
		"--conf hbox.worker.num true":                                           `--conf#: got "hbox.worker.num", want NAME=VALUE`,
		"--conf =2 true":                                                        `--conf#: got "=2", want NAME=VALUE`,
		"--conf hbox.worker.nmu=2 true":                                         `--conf#/hbox.worker.nmu: got the unknown conf "hbox.worker.nmu", want a conf of HBox; did you mean hbox.worker.num?`,
		"--conf my.own=2 true":                                                  `--conf#/my.own: got the unknown conf "my.own", want a conf of HBox; it is kept in the app and ignored`,
		"--conf hbox.container.env.1A=x true":                                   `--conf#/hbox.container.env.1A: got "1A", want a variable's name after muster.env.`,
		"--conf muster.hbox.type=MXNET true":                                    `--conf#/muster.hbox.type: got "muster.hbox.type=MXNET", want --app-type TYPE`,
		"--conf muster.restart=always true":                                     `--conf#/muster.restart: got "always", want instance, gang, never`,
		"--conf muster.commnd=x true":                                           `--conf#/muster.commnd: got unknown key "muster.commnd", want a key that muster knows; did you mean muster.command?`,
		"--conf wroker:muster.command=x true":                                   `--conf#/wroker:muster.command: got the unknown component "wroker", want one of worker; did you mean worker?`,
		"--conf worker:muster.timeout=5m true":                                  `--conf#/worker:muster.timeout: got the key muster.timeout in a component, want it in global; it holds for the whole app`,
		"--conf hbox.docker.image.name= --conf hbox.container.type=docker true": `--conf#/hbox.docker.image.name: got "", want the reference of an image`,
		"--conf hbox.container.type=docker true":                                `--conf#/hbox.container.type: got "docker" without an image, want --conf hbox.docker.image.name=IMAGE, or that name in the administrator's hbox-site.xml; --conf muster.image=host has the processes see this host's root`,
		"--conf yarn.nodemanager.container-executor.type=docker true":           `--conf#/yarn.nodemanager.container-executor.type: got "docker" without an image, want --conf yarn.nodemanager.docker-container-executor.image-name=IMAGE, or that name in the administrator's hbox-site.xml; --conf muster.image=host has the processes see this host's root`,
		"--app-type vpc":                                                        `--app-type#: got VPC without an image, want --conf yarn.nodemanager.docker-container-executor.image-name=IMAGE, or that name in the administrator's hbox-site.xml; the processes see the host's root`,
		// What HBox takes in silence, and does something else.
		"--app-type tensorfow true":                                                        `--app-type#: got the app type "tensorfow", want a type of HBox; did you mean TENSORFLOW? It runs as single processes that know of no other`,
		"--app-type xfow --ps-num 1 true":                                                  `--app-type#: got "xfow", want XFLOW; it is read as that`,
		"--app-type caffe --ps-num 2 true":                                                 `--ps-num#: got 2 with the app type CAFFE, want no value; it has no parameter servers: there are none`,
		"--app-type caffe --tf-evaluator true true":                                        `--tf-evaluator#: got "true", want the app type TENSORFLOW or TENSOR2TENSOR; there is no evaluator`,
		"--app-type tensorflow --tf-evaluator true true":                                   `--tf-evaluator#: got "true", want a distributed job; there is no evaluator`,
		"--app-type tensorflow --ps-num 1 --tf-evaluator true true":                        `--tf-evaluator#: got "true", want a second worker; there is no evaluator`,
		"--app-type mxnet --chiefworker-memory 2g true":                                    `--chiefworker-memory#: got "2g" with the app type MXNET, want the app type TENSORFLOW or TENSOR2TENSOR; it has no effect`,
		"--priority URGENT true":                                                           `--priority#: got "URGENT", want one of DEFAULT, VERY_LOW, LOW, NORMAL, HIGH, VERY_HIGH; HBox takes DEFAULT for it`,
		"--conf hbox.docker.image.name=a:1 true":                                           `--conf#/hbox.docker.image.name: got an image without a container type, want --conf yarn.nodemanager.container-executor.type=docker; it has no effect`,
		"--conf hbox.horovod.timeline=/t true":                                             `--conf#/hbox.horovod.timeline: got "/t" with the app type HBOX, want the app type HOROVOD; it has no effect`,
		"--app-type tensorflow --ps-num 1 --conf hbox.container.maxFailures.rate=0.3 true": `--conf#/hbox.container.maxFailures.rate: got 0.3 with the app type TENSORFLOW, want no value; any failure fails this job, as in HBox`,
	} {
		args := strings.Fields(line)
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "|", " ")
		}
		_, found := hbox.Parse(args, hbox.Site{})
		if got := found.Error(); got != want {
			t.Errorf("%s\n got %s\nwant %s", line, got, want)
		}
		for _, p := range found {
			if !p.Usage {
				t.Errorf("%s: %s: the command line is not at fault", line, p)
			}
		}
	}
}
