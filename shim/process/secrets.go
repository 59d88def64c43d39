package process

// secrets reads the values of the definition's secrets, for one start.
func (p *Process) secrets() (map[string]string, error) {
	values, err := p.Secrets(p.Plan.Process.SecretRefs)
	if err != nil {
		return nil, err
	}
	if p.Secret != nil {
		p.Secret(values)
	}
	return values, nil
}
