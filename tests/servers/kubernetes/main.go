// Command kubernetes is a cluster of one node in one process, for the tests: etcd, kube-apiserver, the controllers of
// Jobs and of garbage, JobSet's controllers with their webhooks, the scheduler and the kubelet, each from its own Go
// module, unchanged. The container runtime below the kubelet is ours (runtime.go).
//
//	kubernetes DIR DEFINITION
//
// Keeps its data below DIR and writes DIR/kubeconfig when all of them answer. DEFINITION is the file of
// JobSet's CustomResourceDefinition.
package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"go.etcd.io/etcd/server/v3/embed"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/tools/events"
	"k8s.io/controller-manager/pkg/informerfactory"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
	"k8s.io/kubernetes/pkg/controller/job"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/profile"
)

func main() {
	if os.Args[0] == containerInit {
		fmt.Fprintln(os.Stderr, "container:", enter(os.Args[1:]))
		os.Exit(notEntered)
	}
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: kubernetes DIR DEFINITION")
		os.Exit(64)
	}
	dir, err := filepath.Abs(os.Args[1])
	if err == nil {
		err = os.Chdir(dir) // no path of theirs begins at the machine's root
	}
	if err == nil {
		err = run(context.Background(), dir, os.Args[2])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "kubernetes:", err)
		os.Exit(1)
	}
}

// run starts all parts in their order and waits for the first of them that ends.
func run(ctx context.Context, dir, definition string) error {
	ended := make(chan error, 8)
	store, err := startEtcd(filepath.Join(dir, "etcd"))
	if err != nil {
		return fmt.Errorf("etcd: %w", err)
	}
	config, err := startAPI(ctx, filepath.Join(dir, "apiserver"), store, ended)
	if err != nil {
		return fmt.Errorf("kube-apiserver: %w", err)
	}
	if err := startJobSet(ctx, config, dir, definition, ended); err != nil {
		return fmt.Errorf("jobset: %w", err)
	}
	if err := startControllers(ctx, config); err != nil {
		return fmt.Errorf("controllers: %w", err)
	}
	if err := startNode(ctx, config, dir, ended); err != nil {
		return fmt.Errorf("kubelet: %w", err)
	}
	if err := publish(config, filepath.Join(dir, "kubeconfig")); err != nil {
		return err
	}
	return errors.Join(errors.New("a part ended"), <-ended)
}

// publish writes the configuration of kubectl's form, whole or not at all: its being there says that all is ready.
func publish(config *rest.Config, path string) error {
	c := api.NewConfig()
	c.Clusters["lab"] = &api.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	c.AuthInfos["lab"] = &api.AuthInfo{Token: config.BearerToken}
	c.Contexts["lab"] = &api.Context{Cluster: "lab", AuthInfo: "lab", Namespace: metav1.NamespaceDefault}
	c.CurrentContext = "lab"
	if err := clientcmd.WriteToFile(*c, path+".new"); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

func startEtcd(dir string) (string, error) {
	c := embed.NewConfig()
	c.Dir, c.LogLevel, c.UnsafeNoFsync = dir, "error", true
	anywhere := []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	c.ListenClientUrls, c.AdvertiseClientUrls = anywhere, anywhere
	c.ListenPeerUrls, c.AdvertisePeerUrls = anywhere, anywhere
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	server, err := embed.StartEtcd(c)
	if err != nil {
		return "", err
	}
	<-server.Server.ReadyNotify()
	return "http://" + server.Clients[0].Addr().String(), nil
}

// startAPI returns when the API answers that it is ready.
func startAPI(ctx context.Context, dir, store string, ended chan<- error) (*rest.Config, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	key, token := filepath.Join(dir, "accounts.key"), rand.Text()
	if err := writeKey(key); err != nil {
		return nil, err
	}
	tokens := filepath.Join(dir, "tokens.csv")
	if err := os.WriteFile(tokens, []byte(token+",admin,admin,system:masters\n"), 0o600); err != nil {
		return nil, err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	o := options.NewServerRunOptions()
	o.SecureServing.Listener = l
	flags := pflag.NewFlagSet("kube-apiserver", pflag.ContinueOnError)
	sets := o.Flags()
	for _, set := range sets.FlagSets {
		flags.AddFlagSet(set)
	}
	if err := flags.Parse([]string{
		"--etcd-servers=" + store, "--cert-dir=" + dir, "--bind-address=127.0.0.1", "--advertise-address=127.0.0.1",
		"--endpoint-reconciler-type=none", "--authorization-mode=RBAC", "--token-auth-file=" + tokens,
		"--service-cluster-ip-range=10.0.0.0/24", "--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-signing-key-file=" + key, "--service-account-key-file=" + key,
		// no controller makes accounts or takes the taint of a new node away
		"--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
	}); err != nil {
		return nil, err
	}
	completed, err := o.Complete(ctx)
	if err != nil {
		return nil, err
	}
	if errs := completed.Validate(); len(errs) > 0 {
		return nil, utilerrors.NewAggregate(errs)
	}
	go func() { ended <- fmt.Errorf("kube-apiserver: %w", apiserver.Run(ctx, completed)) }()
	ca, err := os.ReadFile(filepath.Join(dir, "apiserver.crt"))
	if err != nil {
		return nil, err
	}
	config := &rest.Config{
		Host: "https://" + l.Addr().String(), BearerToken: token, QPS: 500, Burst: 1000,
		TLSClientConfig: rest.TLSClientConfig{CAData: ca},
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return config, await(ctx, "the API is ready", func() error {
		if err := client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error(); err != nil {
			return err
		}
		_, err := client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceDefault, metav1.GetOptions{})
		return err
	})
}

func writeKey(path string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), 0o600)
}

// await asks until there is no error, for a minute.
func await(ctx context.Context, what string, ask func() error) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for tick := time.Tick(50 * time.Millisecond); ; {
		err := ask()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not within a minute: %s: %w", what, err)
		case <-tick:
		}
	}
}

// startControllers starts the scheduler and those of kube-controller-manager's controllers that Jobs need.
func startControllers(ctx context.Context, config *rest.Config) error {
	// A failed pod is followed by another at once: the tests wait for the limit of them.
	job.DefaultJobPodFailureBackOff, job.SyncJobBatchPeriod = time.Millisecond, 100*time.Millisecond
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	meta, err := metadata.NewForConfig(config)
	if err != nil {
		return err
	}
	shared := informers.NewSharedInformerFactory(client, 0)
	jobs, err := job.NewController(ctx, shared.Core().V1().Pods(), shared.Batch().V1().Jobs(), client)
	if err != nil {
		return err
	}
	started := make(chan struct{})
	discovery := memory.NewMemCacheClient(client.Discovery())
	both := informerfactory.NewInformerFactory(shared, metadatainformer.NewSharedInformerFactory(meta, 0))
	garbage, err := garbagecollector.NewGarbageCollector(ctx, client, meta,
		restmapper.NewDeferredDiscoveryRESTMapper(discovery),
		map[schema.GroupResource]struct{}{{Resource: "events"}: {}, {Group: "events.k8s.io", Resource: "events"}: {}},
		both, started)
	if err != nil {
		return err
	}
	recorder := events.NewBroadcaster(&events.EventSinkImpl{Interface: client.EventsV1()})
	recorder.StartRecordingToSink(ctx.Done())
	places, err := scheduler.New(ctx, client, shared, nil, profile.NewRecorderFactory(recorder))
	if err != nil {
		return err
	}
	both.Start(ctx.Done())
	close(started)
	shared.WaitForCacheSync(ctx.Done())
	go jobs.Run(ctx, 5)
	go garbage.Run(ctx, 5, time.Minute)
	go garbage.Sync(ctx, client.Discovery(), time.Second)
	if err := places.WaitForHandlersSync(ctx); err != nil {
		return err
	}
	go places.Run(ctx)
	return nil
}

// nodeReady tells whether the node takes pods.
func nodeReady(node *corev1.Node) error {
	var all []string
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
			return nil
		}
		all = append(all, string(c.Type)+": "+c.Message)
	}
	return errors.New(strings.Join(all, "; "))
}
