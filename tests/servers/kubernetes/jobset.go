package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	"sigs.k8s.io/jobset/pkg/controllers"
	"sigs.k8s.io/jobset/pkg/webhooks"
	"sigs.k8s.io/yaml"
)

// startJobSet registers JobSet's definition, starts its controllers and webhooks, and registers those when they answer.
func startJobSet(ctx context.Context, config *rest.Config, dir, definition string, ended chan<- error) error {
	ctrl.SetLogger(klog.Background())
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientscheme.AddToScheme, jobset.AddToScheme, apiextensions.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	if err := define(ctx, c, definition); err != nil {
		return err
	}
	crt, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		return err
	}
	certs := filepath.Join(dir, "webhook")
	if err := os.MkdirAll(certs, 0o700); err != nil {
		return err
	}
	for name, text := range map[string][]byte{"tls.crt": crt, "tls.key": key} {
		if err := os.WriteFile(filepath.Join(certs, name), text, 0o600); err != nil {
			return err
		}
	}
	port, err := freePort(ctx)
	if err != nil {
		return err
	}
	m, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		WebhookServer: webhook.NewServer(webhook.Options{Host: "127.0.0.1", Port: port, CertDir: certs}),
	})
	if err != nil {
		return err
	}
	if err := add(ctx, m); err != nil {
		return err
	}
	go func() { ended <- fmt.Errorf("jobset: %w", m.Start(ctx)) }()
	answers := m.GetWebhookServer().StartedChecker()
	if err := await(ctx, "JobSet's webhooks answer", func() error { return answers(nil) }); err != nil {
		return err
	}
	return hook(ctx, c, "https://127.0.0.1:"+strconv.Itoa(port), crt)
}

func add(ctx context.Context, m ctrl.Manager) error {
	if err := controllers.SetupJobSetIndexes(ctx, m.GetFieldIndexer()); err != nil {
		return err
	}
	if err := controllers.SetupPodIndexes(ctx, m.GetFieldIndexer()); err != nil {
		return err
	}
	record := m.GetEventRecorderFor("jobset") //nolint:staticcheck // JobSet's controllers take no other
	if err := controllers.NewJobSetReconciler(m.GetClient(), m.GetScheme(), record).SetupWithManager(m); err != nil {
		return err
	}
	if err := controllers.NewPodReconciler(m.GetClient(), m.GetScheme(), record).SetupWithManager(m); err != nil {
		return err
	}
	sets, err := webhooks.NewJobSetWebhook(m.GetClient())
	if err != nil {
		return err
	}
	if err := sets.SetupWebhookWithManager(m); err != nil {
		return err
	}
	return webhooks.NewPodWebhook(m.GetClient()).SetupWebhookWithManager(m)
}

// define registers a definition and waits until the API serves it.
func define(ctx context.Context, c client.Client, path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var crd apiextensions.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(text, &crd); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if err := c.Create(ctx, &crd); err != nil {
		return err
	}
	return await(ctx, "the API serves JobSets", func() error {
		return c.List(ctx, new(jobset.JobSetList))
	})
}

// hook registers what JobSet's own configuration does: its webhooks of all JobSets, and of the pods that belong to one.
func hook(ctx context.Context, c client.Client, base string, ca []byte) error {
	at := func(path string) admissionv1.WebhookClientConfig {
		to := base + path
		return admissionv1.WebhookClientConfig{URL: &to, CABundle: ca}
	}
	rule := func(group, version, resource string, on ...admissionv1.OperationType) []admissionv1.RuleWithOperations {
		return []admissionv1.RuleWithOperations{{Operations: on, Rule: admissionv1.Rule{
			APIGroups: []string{group}, APIVersions: []string{version}, Resources: []string{resource},
		}}}
	}
	sets := func(on ...admissionv1.OperationType) []admissionv1.RuleWithOperations {
		return rule(jobset.GroupVersion.Group, jobset.GroupVersion.Version, "jobsets", on...)
	}
	pods := rule("", "v1", "pods", admissionv1.Create)
	ours := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
		Key: jobset.JobSetNameKey, Operator: metav1.LabelSelectorOpExists,
	}}}
	none, v1 := admissionv1.SideEffectClassNone, []string{"v1"}
	mutating := &admissionv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "jobset"},
		Webhooks: []admissionv1.MutatingWebhook{
			{
				Name: "mjobset.kb.io", ClientConfig: at("/mutate-jobset-x-k8s-io-v1alpha2-jobset"),
				Rules: sets(admissionv1.Create), SideEffects: &none, AdmissionReviewVersions: v1,
			},
			{
				Name: "mpod.kb.io", ClientConfig: at("/mutate--v1-pod"), Rules: pods, ObjectSelector: ours,
				SideEffects: &none, AdmissionReviewVersions: v1,
			},
		},
	}
	validating := &admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "jobset"},
		Webhooks: []admissionv1.ValidatingWebhook{
			{
				Name: "vjobset.kb.io", ClientConfig: at("/validate-jobset-x-k8s-io-v1alpha2-jobset"),
				Rules: sets(admissionv1.Create, admissionv1.Update), SideEffects: &none, AdmissionReviewVersions: v1,
			},
			{
				Name: "vpod.kb.io", ClientConfig: at("/validate--v1-pod"), Rules: pods, ObjectSelector: ours,
				SideEffects: &none, AdmissionReviewVersions: v1,
			},
		},
	}
	if err := c.Create(ctx, mutating); err != nil {
		return err
	}
	return c.Create(ctx, validating)
}

// freePort is a port of 127.0.0.1 that is free at this moment: a webhook server takes a number, no listener.
func freePort(ctx context.Context) (int, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	_, text, _ := net.SplitHostPort(l.Addr().String())
	port, err := strconv.Atoi(text)
	if err != nil {
		return 0, err
	}
	return port, l.Close()
}
